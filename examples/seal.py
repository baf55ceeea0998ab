"""Seal the secrets of examples for the controller of sealed-secrets: `make examples`.

Each file below `secrets/` is sealed into `sealed.yaml` of the directory with its name. The key is
created if there is none, and stays on this machine: Git contains neither the key nor the plain
values. Each run creates and seals new passwords, which rotates the secrets.

A value is sealed as the controller expects it: a separate key, encrypted for the controller and
for one Secret of one namespace (RSA-OAEP), then the text (AES-GCM).
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tidegate.documents import read_documents
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json

TEMPLATES, SEALED, KEY = "secrets", "sealed.yaml", ".keys/sealed-secrets.pem"
RANDOM = "%RANDOM%"
"""A placeholder for a password that no person needs."""
KEY_SIZE, SESSION_SIZE, NONCE = 4096, 32, bytes(12)


def seal_example(root: Path) -> list[Path]:
    """Write all sealed files of an example, and return them."""
    public = own_key(root / KEY).public_key()
    written = []
    for template in sorted((root / TEMPLATES).rglob("*.yaml")):
        documents = read_documents(template.read_bytes(), template.name)
        target = root / template.relative_to(root / TEMPLATES).with_suffix("") / SEALED
        texts = [to_yaml(seal_secret(document.body, public)) for document in documents]
        target.write_text("---\n".join(texts))
        written.append(target)
    return written


def own_key(place: Path) -> rsa.RSAPrivateKey:
    """The controller's key, made where there is none."""
    if place.exists():
        pem_private_key = serialization.load_pem_private_key(place.read_bytes(), password=None)
        if not isinstance(pem_private_key, rsa.RSAPrivateKey):
            raise TypeError(f"{place} is no key of RSA")
        return pem_private_key
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_SIZE)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    place.parent.mkdir(mode=0o700, exist_ok=True)
    place.touch(mode=0o600)
    place.write_bytes(pem)
    return key


def seal_secret(body: dict[str, Json], public: rsa.RSAPublicKey) -> dict[str, Json]:
    """Return the SealedSecret of a Secret."""
    name, namespace = get_text(body, "metadata", "name"), get_text(body, "metadata", "namespace")
    label = f"{namespace}/{name}".encode()
    values = {key: str(value) for key, value in get_mapping(body, "stringData").items()}
    sealed: dict[str, Json] = {
        key: seal(with_passwords(value).encode(), label, public) for key, value in values.items()
    }
    metadata: dict[str, Json] = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": metadata | _notes(body),
        "spec": {"encryptedData": sealed, "template": {"metadata": metadata, "type": "Opaque"}},
    }


def with_passwords(template: str) -> str:
    """A text with a new password in each place for one."""
    first, *rest = template.split(RANDOM)
    return first + "".join(secrets.token_urlsafe(24) + part for part in rest)


def _notes(body: dict[str, Json]) -> dict[str, Json]:
    """The annotations of a template, such as its wave, where it has any."""
    notes = get_mapping(body, "metadata", "annotations")
    return {"annotations": notes} if notes else {}


def seal(value: bytes, label: bytes, public: rsa.RSAPublicKey) -> str:
    session = os.urandom(SESSION_SIZE)
    oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), label)
    wrapped = public.encrypt(session, oaep)
    sealed = AESGCM(session).encrypt(NONCE, value, None)
    return base64.b64encode(len(wrapped).to_bytes(2, "big") + wrapped + sealed).decode()


if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]):
        for file in seal_example(place):
            print(file)
