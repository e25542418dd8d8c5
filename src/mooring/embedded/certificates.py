"""A certificate that the server signs for itself, for clients that are given it."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# It is made anew at every start, so this only has to outlast one run.
_VALID = timedelta(days=365)
_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What clients trust, and what the server listens with."""

    pem: bytes
    context: ssl.SSLContext


def self_signed(host: str) -> Certificate:
    """A certificate for a host and for the loopback addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mooring embedded cluster")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(_alternatives(host)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Certificate(pem, _context(pem, secret))


def _context(pem: bytes, secret: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # The ssl module reads keys from files only; the folder is ours alone and goes at once.
    with tempfile.TemporaryDirectory() as folder:
        both = Path(folder, "both.pem")
        both.touch(0o600)
        both.write_bytes(secret + pem)
        context.load_cert_chain(both)
    return context


def _alternatives(host: str) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    addresses = {ipaddress.ip_address(each) for each in ("127.0.0.1", "::1")}
    try:
        addresses.add(ipaddress.ip_address(host))
    except ValueError:
        names.append(x509.DNSName(host))
    return [*names, *(x509.IPAddress(each) for each in sorted(addresses, key=str))]
