"""Certificates that are given, kept, made, and exchanged while serving."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from moorage.app.https_site import (
    CertificateError,
    Certificates,
    CertificateSettings,
    make_self_signed,
)


def write(folder: Path, name: str = "localhost") -> CertificateSettings:
    key, certificate = make_self_signed((name, "127.0.0.1"))
    (folder / "tls.key").write_bytes(key)
    (folder / "tls.crt").write_bytes(certificate)
    return CertificateSettings(str(folder / "tls.crt"), str(folder / "tls.key"))


def test_a_certificate_is_for_its_names() -> None:
    _, made = make_self_signed(("host", "127.0.0.1", "::1"))

    found = x509.load_pem_x509_certificate(made)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["host"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]


def test_files_that_did_not_change_are_not_read_again(tmp_path: Path) -> None:
    assert not Certificates(write(tmp_path)).refresh()


def test_changed_files_are_read_again(tmp_path: Path) -> None:
    certificates = Certificates(write(tmp_path))
    write(tmp_path, "other")
    os.utime(tmp_path / "tls.crt", (1, 1))

    assert certificates.refresh()
    assert not certificates.refresh()


@pytest.mark.parametrize("spoil", ["half", "gone", "garbage"])
def test_what_cannot_be_used_leaves_the_old_one(tmp_path: Path, spoil: str) -> None:
    certificates = Certificates(write(tmp_path))
    if spoil == "half":
        (tmp_path / "tls.key").write_bytes(make_self_signed(("x",))[0])
    elif spoil == "gone":
        (tmp_path / "tls.crt").unlink()
    else:
        (tmp_path / "tls.crt").write_text("-----BEGIN CERTIFICATE-----\nnonsense")
    for file in tmp_path.iterdir():
        os.utime(file, (1, 1))

    assert not certificates.refresh()
    write(tmp_path)
    os.utime(tmp_path / "tls.crt", (2, 2))
    assert certificates.refresh()


def test_a_folder_keeps_what_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    Certificates(CertificateSettings(folder=str(folder)))
    first = (folder / "moorage.crt").read_bytes()
    Certificates(CertificateSettings(folder=str(folder)))

    assert (folder / "moorage.crt").read_bytes() == first


def test_files_of_a_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / "moorage.key").touch(mode=0o644)
    Certificates(CertificateSettings(folder=str(folder)))
    Certificates(CertificateSettings(folder=str(tmp_path / "new")))

    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (CertificateSettings("a.crt"), "go together"),
        (CertificateSettings("/none/a.crt", "/none/a.key"), "/none/a.crt"),
        (CertificateSettings(folder="/proc/none"), "/proc/none"),
    ],
    ids=["half a pair", "no such file", "no such folder"],
)
def test_refusals(settings: CertificateSettings, told: str) -> None:
    with pytest.raises(CertificateError, match=told):
        Certificates(settings)


def test_a_key_with_a_passphrase_is_refused(tmp_path: Path) -> None:
    settings = write(tmp_path)
    key = serialization.load_pem_private_key((tmp_path / "tls.key").read_bytes(), None)
    (tmp_path / "tls.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(CertificateError, match="not supported"):
        Certificates(settings)
