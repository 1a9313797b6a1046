"""Keys and certificates of the lab: a CA for its Kubernetes APIs, self-signed ones for devices."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gpucloud.lab.place import write_atomically

TEN_YEARS = timedelta(days=3650)


def make_ca(certificate: Path, key: Path, common_name: str) -> None:
    """Make a certificate authority where it is missing; an existing one is kept for ever."""
    if certificate.exists() and key.exists():
        return
    private = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(common_name, private.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_ca_usage(), critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False
    )
    signed = builder.sign(private, hashes.SHA256())
    write_atomically(key, _key_pem(private), 0o600)
    write_atomically(certificate, signed.public_bytes(serialization.Encoding.PEM))


def device_context(path: Path, common_name: str) -> ssl.SSLContext:
    """The TLS side of a device: its own self-signed certificate, made once and kept in `path`."""
    if not path.exists():
        private = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(common_name, private.public_key())
        names = [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.DNSName("localhost"),
            x509.DNSName(common_name),
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        signed = builder.sign(private, hashes.SHA256())
        pem = _key_pem(private) + signed.public_bytes(serialization.Encoding.PEM)
        write_atomically(path, pem, 0o600)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def _builder(common_name: str, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    start = datetime.now(UTC) - timedelta(minutes=5)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + TEN_YEARS)
    )


def _ca_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(private: ec.EllipticCurvePrivateKey) -> bytes:
    return private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
