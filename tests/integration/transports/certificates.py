"""A certificate authority of the moment, and a certificate for loopback signed by it."""

from __future__ import annotations

import hashlib
import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="makes the local certificate")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make_chain(folder: Path) -> dict[str, Path]:
    """Write certificates of a server at loopback that are trusted in an unusual way; return the bundles by kind.

    ``folder`` is a folder of files named by hash, ``leaf`` has only the server's own certificate, whose issuer is not
    there. The file ``server.pem`` of the folder has key and certificate.
    """
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    here = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    authority = _certificate("test authority", authority_key.public_key(), authority_key, names=None).public_bytes(pem)
    leaf = _certificate("test server", key.public_key(), authority_key, names=here).public_bytes(pem)
    (folder / "server.pem").write_bytes(leaf + key.private_bytes(pem, form, serialization.NoEncryption()))
    (folder / "leaf.pem").write_bytes(leaf)
    hashed = folder / "hashed"
    hashed.mkdir()
    (hashed / f"{_name_hash('test authority')}.0").write_bytes(authority)
    return {"folder": hashed, "leaf": folder / "leaf.pem"}


def _name_hash(subject):
    """Return the hash by which OpenSSL looks for a certificate: of its subject in canonical form."""
    utf8 = subject.lower().encode()
    value = b"\x0c" + bytes([len(utf8)]) + utf8
    pair = b"\x06\x03\x55\x04\x03" + value
    row = b"\x30" + bytes([len(pair)]) + pair
    digest = hashlib.sha1(b"\x31" + bytes([len(row)]) + row, usedforsecurity=False).digest()
    return f"{int.from_bytes(digest[:4], 'little'):08x}"


def make(folder: Path) -> tuple[Path, ssl.SSLContext, ssl.SSLContext]:
    """Write an authority's certificate; return it with server contexts for this machine and for another name."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("test authority", authority_key.public_key(), authority_key, names=None)
    file = folder / "authority.pem"
    file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    here = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    return file, _context(folder, authority_key, here), _context(folder, authority_key, [x509.DNSName("other.test")])


def _context(folder, authority_key, names):
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate("test server", key.public_key(), authority_key, names=names)
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file = folder / "server.pem"
    file.write_bytes(certificate.public_bytes(pem) + key.private_bytes(pem, form, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def _certificate(subject, public_key, issuer_key, *, names):
    def named(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named("test authority"))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=names is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if names is None:
        # Python 3.13 and later accept no authority that does not say that it signs certificates.
        signs = dict.fromkeys(
            ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"), False
        )
        signs |= dict.fromkeys(("key_agreement", "crl_sign", "encipher_only", "decipher_only"), False)
        built = built.add_extension(x509.KeyUsage(key_cert_sign=True, **signs), critical=True)
    else:
        built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return built.sign(issuer_key, hashes.SHA256())
