"""A certificate authority for tests."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.client_certificates import encode_pem, make_builder, make_name


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = make_name("test authority")
        own = make_builder(self._name, self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(encode_pem(own.sign(self._key, hashes.SHA256())))

    def sign(self, common_name: str, dns: str = "") -> Pair:
        """A certificate for 127.0.0.1, or for a DNS name if one is given."""
        key = ec.generate_private_key(ec.SECP256R1())
        san = x509.DNSName(dns) if dns else x509.IPAddress(ip_address("127.0.0.1"))
        signed = (
            make_builder(make_name(common_name), self._name, key.public_key())
            .add_extension(x509.SubjectAlternativeName([san]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self._folder / f"{common_name}.crt", self._folder / f"{common_name}.key")
        pair.certificate.write_bytes(encode_pem(signed))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair

    def serving(self, pair: Pair, *, ask_clients: bool = False) -> ssl.SSLContext:
        """What a server needs; with `ask_clients` it insists on a certificate of ours."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        if ask_clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.certificate)
        return context
