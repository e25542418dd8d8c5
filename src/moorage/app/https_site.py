"""Serves HTTPS for as long as it is needed, with a certificate.

The certificate is given as files, kept in a folder, or made at the start. Changed files are read
again.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moorage.documents.errors import InputError

from .connections import ConnectionLimits, accept_connections
from .logs import make_log

LOG = make_log("moorage.serving")

#: Where kube-scheduler serves.
SECURE_PORT = 10259

# How often the files of the certificate are looked at.
_REFRESH_SECONDS = 10.0

# How long a certificate that signs itself is good for; every start without files makes another.
_VALIDITY = timedelta(days=365)
# Clocks of others may be behind.
_LEEWAY = timedelta(hours=1)

# What a folder of certificates has them under.
_PAIR = "moorage"


class CertificateError(InputError):
    """A certificate that cannot be used. The text names its file."""


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """Where the certificate is. Without files one is made, and kept in `folder` if given."""

    certificate_file: str = ""
    key_file: str = ""
    folder: str = ""
    #: Who the certificate is for, besides this host.
    names: tuple[str, ...] = ("localhost", "127.0.0.1", "::1")
    #: Certificates that clients show must be signed by one of these; they need not show any.
    client_ca_file: str = ""


class Certificates:
    """The TLS contexts of the server.

    After a `refresh`, new connections get the new certificate.
    """

    def __init__(self, settings: CertificateSettings) -> None:
        if bool(settings.certificate_file) != bool(settings.key_file):
            raise CertificateError("--tls-cert-file and --tls-private-key-file go together")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if settings.client_ca_file:
            _load_client_ca(self.context, settings.client_ca_file)
        self._files: tuple[Path, Path] | None = None
        self._seen: tuple[tuple[int, int], ...] = ()
        if settings.certificate_file:
            self._files = Path(settings.certificate_file), Path(settings.key_file)
        elif settings.folder:
            self._files = _find_or_make_pair(Path(settings.folder), settings.names)
        if self._files is None:
            self._load_made(settings.names)
        else:
            self._seen = _versions(self._files)
            _load(self.context, self._files)

    def refresh(self) -> bool:
        """Reads the files again if they have changed; if they cannot be used, the old ones stay."""
        if self._files is None:
            return False
        try:
            seen = _versions(self._files)
            if seen == self._seen:
                return False
            # Tried on a context of its own first: half a pair must not replace a whole one.
            _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._files)
            _load(self.context, self._files)
        except CertificateError as error:
            LOG.warning("The old certificate stays in use", error=error)
            return False
        self._seen = seen
        LOG.info("Certificate was read again", file=self._files[0])
        return True

    def _load_made(self, names: tuple[str, ...]) -> None:
        # Only files can be loaded; these are gone before anybody connects.
        with TemporaryDirectory(prefix="moorage-") as folder:
            _load(self.context, _find_or_make_pair(Path(folder), names))


def _load(context: ssl.SSLContext, files: tuple[Path, Path]) -> None:
    certificate, key = files
    try:
        # A key with a passphrase would be asked for on the terminal.
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        raise CertificateError(f"{certificate} with key {key}: {error}") from error


def _load_client_ca(context: ssl.SSLContext, file: str) -> None:
    try:
        context.load_verify_locations(file)
    except (OSError, ValueError) as error:
        raise CertificateError(f"{file}: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL


def _no_passphrase() -> str:
    raise ValueError("keys with a passphrase are not supported")


def _versions(files: tuple[Path, Path]) -> tuple[tuple[int, int], ...]:
    """Returns values that differ if the files have changed."""
    try:
        stats = [path.stat() for path in files]
    except OSError as error:
        raise CertificateError(f"{error.filename}: {error.strerror}") from error
    return tuple((each.st_mtime_ns, each.st_ino) for each in stats)


def _find_or_make_pair(folder: Path, names: tuple[str, ...]) -> tuple[Path, Path]:
    """Returns the pair in a folder; makes one if there is none."""
    certificate, key = folder / f"{_PAIR}.crt", folder / f"{_PAIR}.key"
    if not (certificate.exists() and key.exists()):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_pair(certificate, key, names)
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error
    return certificate, key


def _write_pair(certificate: Path, key: Path, names: tuple[str, ...]) -> None:
    made_key, made = make_self_signed((gethostname(), *names))
    for path, content in ((key, made_key), (certificate, made)):
        # A file that is there may be readable by others, so it is replaced, not written to.
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)


def make_self_signed(names: tuple[str, ...]) -> tuple[bytes, bytes]:
    """Makes a key and a certificate for these names and addresses, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LEEWAY)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectAlternativeName(list(map(_general, names))), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private, made.public_bytes(serialization.Encoding.PEM)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """Where to serve. Port 0 means any free port."""

    bind_address: str = "0.0.0.0"
    secure_port: int = SECURE_PORT
    certificate: CertificateSettings = field(default_factory=CertificateSettings)
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


@asynccontextmanager
async def serve_https(
    app: web.Application, settings: ServingSettings, *, is_lasting: bool = True
) -> AsyncIterator[int]:
    """Serves for as long as the context lasts; yields the port.

    If it is not lasting, another server follows on the same port and logs the address.
    """
    certificates = Certificates(settings.certificate)
    address = settings.bind_address, settings.secure_port
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(
            accept_connections(app, address, settings.limits, certificates.context)
        )
        refreshing = asyncio.create_task(_keep_fresh(certificates))
        stack.callback(refreshing.cancel)
        if is_lasting:
            LOG.info("Serving securely", address=settings.bind_address, port=port)
        yield port


async def _keep_fresh(certificates: Certificates) -> None:
    while True:
        await asyncio.sleep(_REFRESH_SECONDS)
        certificates.refresh()
