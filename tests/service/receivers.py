"""Those who are called back: a server on loopback that writes down what it gets, and a certificate to sign with."""

import datetime
import json
import ssl
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from fastapi.testclient import TestClient

from maxrr.service import app, callbacks
from maxrr.service.protocols import Protocols

DOMAIN = "opendsr.processor.example"


class Receiver:
    """A server that answers with the statuses it is given, then with 200; `calls` has the path, headers and body."""

    def __init__(self, pem=None):
        receiver = self
        self.calls, self.statuses = [], []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.calls.append((self.path, dict(self.headers), body))
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                self.send_response(status)
                self.send_header("Location", f"{receiver.host}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"http://127.0.0.1:{self.server.server_port}"
        if pem is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.host = f"https://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def said(self):
        return [json.loads(body) for _, _, body in self.calls]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def start(settings, monkeypatch):
    """Starts services that speak protocols, and tell others only when `turn` is called."""
    monkeypatch.setattr(callbacks, "PAUSE", 3600.0)
    monkeypatch.setattr(callbacks, "FIRST", 0.0)
    clients = []

    from tests.service.conftest import House

    def started(said, resolver=None):
        people = {("email", "fifty@people.example"): 50, ("email:sha256", "ab" * 32): 50, ("email", "other"): 51}
        find = resolver or (lambda kind, value: people.get((kind, value)))
        made = app(replace(settings, resolver=find, protocols=Protocols.model_validate(said)))
        made.state.service.current.refresh()
        clients.append(TestClient(made, client=("127.0.0.1", 1)).__enter__())
        house = House(clients[-1], made.state.service)
        house.callbacks = made.state.callbacks
        house.tell = lambda: [None for _ in iter(made.state.callbacks.turn, 0)]
        return house

    yield started
    for each in clients:
        each.__exit__()


def certificate(path, key=None, name=DOMAIN):
    """Write a certificate and its key."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2026, 1, 1)
    built = x509.CertificateBuilder(subject, subject, key.public_key(), 7, begin, begin.replace(year=2046))
    built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(built.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM) + private)
    return path


def rsa_key():
    return rsa.generate_private_key(65537, 2048)
