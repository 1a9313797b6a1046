"""A stub of the agent's door for these tests: https, one plan, and what it was told."""

from __future__ import annotations

import datetime
import ipaddress
import json
import select
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class StubDoor:
    """Answers `/agent/v1/` with `plan`; `answers` holds statuses to give first, per path."""

    def __init__(self, folder, plan=None):
        self.ca = make_certificate(folder)
        self.plan = plan or {}
        self.answers = {}
        self.heard = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "door.crt", folder / "door.key")
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def told(self, path):
        return [body for where, _, body in self.heard if where == f"/agent/v1/{path}"]

    def _handler(self):
        door = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self._answer(None)

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                self._answer(json.loads(self.rfile.read(length)))

            def _answer(self, body):
                name = self.path.rpartition("/")[2]
                door.heard.append((self.path, self.headers.get("Authorization"), body))
                queue = door.answers.get(name) or [200]
                status = queue.pop(0)
                if status == "drop":
                    self.connection.close()
                    return
                made = {"hello": {"token": "agt_1"}, "plan": door.plan}.get(name, {})
                text = json.dumps(made).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *rest):
                pass

        return Handler


class StubProxy:
    """A CONNECT proxy that refuses the first `refuse` tunnels, as a port in another VLAN would."""

    def __init__(self, refuse=0):
        self.refuse, self.tunnels = refuse, []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join()

    def _accept(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(client,)))
            self._threads[-1].start()

    def _serve(self, client):
        with client:
            line = client.recv(4096).decode().splitlines()[0]
            if self.refuse:
                self.refuse -= 1
                client.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")
                return
            host, port = line.split()[1].split(":")
            self.tunnels.append(line)
            with socket.create_connection((host, int(port))) as door:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                _pump(client, door)


def _pump(one, other):
    while True:
        for ready in select.select([one, other], [], [])[0]:
            try:
                data = ready.recv(65536)
            except ConnectionError:
                return
            if not data:
                return
            (other if ready is one else one).sendall(data)


def make_certificate(folder):
    """A self-signed certificate for 127.0.0.1 in `folder`; returns it as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "door")])
    today = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "door.crt").write_bytes(pem)
    (folder / "door.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem.decode()
