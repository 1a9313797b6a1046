"""The door's own CA, made once under keys/, and its certificate, renewed before it ends."""

from __future__ import annotations

import fcntl
import ipaddress
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from django.conf import settings

CA_LIFE = timedelta(days=3650)
LIFE = timedelta(days=397)
RENEW_BEFORE = timedelta(days=60)


def ca_pem() -> str:
    """The CA that agents pin, as PEM; made at the first call."""
    with _locked() as folder:
        certificate, _ = _authority(folder)
    return _pem(certificate).decode()


def server_context() -> ssl.SSLContext:
    """TLS for the door: a certificate of our CA for every name by which machines reach it."""
    with _locked() as folder:
        authority, key = _authority(folder)
        if not _usable(folder, authority):
            _issue(folder, authority, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / "door.pem", folder / "door.key")
    return context


def _names() -> list[x509.GeneralName]:
    hosts = {"127.0.0.1", "localhost"}
    hosts |= {urlsplit(url).hostname or "" for url in (settings.AGENT_URL, settings.BMC_URL)}
    return [_name(host) for host in sorted(hosts) if host]


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


@contextmanager
def _locked() -> Iterator[Path]:
    """The keys folder, with the door's files to ourselves: door and workers may start at once."""
    folder = Path(settings.DOOR_CERTIFICATES)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(folder / "door.lock", os.O_RDWR | os.O_CREAT, 0o600), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate, key = folder / "door-ca.pem", folder / "door-ca.key"
    if not certificate.exists() or not key.exists():
        _make_authority(certificate, key)
    return x509.load_pem_x509_certificate(certificate.read_bytes()), _load(key)


def _make_authority(certificate: Path, key: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpucloud door CA")])
    identifier = x509.SubjectKeyIdentifier.from_public_key(private.public_key())
    signed = (
        _builder(name, name, private.public_key(), CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(private, hashes.SHA256())
    )
    _write(key, _key_pem(private))
    _write(certificate, _pem(signed))


def _usable(folder: Path, authority: x509.Certificate) -> bool:
    try:
        found = x509.load_pem_x509_certificate((folder / "door.pem").read_bytes())
        key = _load(folder / "door.key")
        found.verify_directly_issued_by(authority)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # anything unreadable is made anew: the CA is what agents pin
        return False
    fresh = found.not_valid_after_utc - datetime.now(UTC) > RENEW_BEFORE
    return fresh and found.public_key() == key.public_key() and set(names) >= set(_names())


def _issue(folder: Path, authority: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpucloud door")])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    signed = (
        _builder(name, authority.subject, private.public_key(), LIFE)
        .add_extension(x509.SubjectAlternativeName(_names()), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder / "door.key", _key_pem(private))
    _write(folder / "door.pem", _pem(signed))


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, life: timedelta
) -> x509.CertificateBuilder:
    # A ramdisk's clock may be behind by hours: BMCs often run without NTP.
    start = datetime.now(UTC) - timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + life)
    )


def _usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _load(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path.name} is not an EC key")
    return key


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(content)
    part.replace(path)
