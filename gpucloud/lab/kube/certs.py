"""Certificates that the lab's CA signs: one for each API, and its administrators' client ones."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpucloud.lab.place import write_atomically

_TEN_YEARS = timedelta(days=3650)


class Authority:
    """The CA in `lab/kube/`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ca.crt"
        self.pem = self.path.read_text()
        self._certificate = x509.load_pem_x509_certificate(self.pem.encode())
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise SystemExit(f"{folder}/ca.key is no elliptic curve key")
        self._key = key

    def server_context(self, path: Path, name: str) -> ssl.SSLContext:
        """TLS for an API on 127.0.0.1, its certificate made once and kept in `path`."""
        if not path.exists():
            certificate, key = self._sign(name, ExtendedKeyUsageOID.SERVER_AUTH)
            write_atomically(path, key + certificate, 0o600)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        context.load_verify_locations(cadata=self.pem)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def client_pair(self, name: str) -> tuple[str, str]:
        """Certificate and key (PEM) by which a client is the user `name`."""
        return self._sign(name, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _sign(self, name: str, usage: x509.ObjectIdentifier) -> tuple[str, str]:
        private = ec.generate_private_key(ec.SECP256R1())
        start = datetime.now(UTC) - timedelta(minutes=5)
        names: list[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.DNSName("localhost"),
        ]
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._certificate.subject)
            .public_key(private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + _TEN_YEARS)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(authority_key, critical=False)
        )
        signed = builder.sign(self._key, hashes.SHA256())
        key = private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return signed.public_bytes(serialization.Encoding.PEM).decode(), key.decode()
