"""The platform of `examples/fineract`: nine Applications in their waves, secrets sealed by us."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from examples.seal import KEY, NONCE, own_key, seal_example
from tests.support.tidegate_runs import ROOT, tidegate
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_mapping, get_text

ORDER = [
    ["sealed-secrets"],
    ["fineract-dev-database-init"],
    ["fineract-dev-keycloak"],
    ["fineract-dev-oauth2-proxy"],
    ["fineract-dev-redis"],
    ["fineract-dev-batch", "fineract-dev-read", "fineract-dev-write"],
    ["fineract-dev-community-app"],
]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a key of its own."""
    ignored = shutil.ignore_patterns(".keys", "sealed.yaml")
    place = tmp_path_factory.mktemp("platform") / "fineract"
    root = Path(shutil.copytree(ROOT / "examples" / "fineract", place, ignore=ignored))
    seal_example(root)
    return root


def test_applications_are_synced_wave_by_wave_each_after_the_previous_one(
    platform: Path,
) -> None:
    ran = tidegate("sync", platform, "--sandbox", "-o", "json")

    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    spans: dict[str, list[int]] = {}
    for event in events:
        if event.get("unit") and event["event"].startswith("step."):
            spans.setdefault(event["unit"].rpartition("/")[2], []).append(event["at"])
    ends = [max(spans[name][-1] for name in wave) for wave in ORDER]
    begins = [min(at for name in wave for at in _applying(events, name)) for wave in ORDER]
    assert all(end <= start for end, start in zip(ends, begins[1:], strict=False))


def _applying(events: list[dict[str, object]], name: str) -> list[int]:
    return [
        at
        for event in events
        if event["event"] == "object.written"
        and str(event["unit"]).rpartition("/")[2] == name
        and isinstance(at := event["at"], int)
    ]


def test_a_sealed_value_opens_with_the_key_for_its_own_secret_alone(platform: Path) -> None:
    key = own_key(platform / KEY)
    file = platform / "apps" / "keycloak" / "base" / "sealed.yaml"
    admin, database = read_documents(file.read_bytes(), file.name)

    def opened(label: str, value: str) -> bytes:
        raw = base64.b64decode(value)
        size = int.from_bytes(raw[:2], "big")
        oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), label.encode())
        return AESGCM(key.decrypt(raw[2 : 2 + size], oaep)).decrypt(NONCE, raw[2 + size :], None)

    name = get_text(admin.body, "metadata", "name")
    values = get_mapping(admin.body, "spec", "encryptedData")
    user = str(values["KC_BOOTSTRAP_ADMIN_USERNAME"])
    password = str(values["KC_BOOTSTRAP_ADMIN_PASSWORD"])
    assert opened(f"fineract-dev/{name}", user) == b"admin"
    assert len(opened(f"fineract-dev/{name}", password)) >= 24
    with pytest.raises(ValueError, match=r"(?i)decryption"):
        opened(f"fineract-dev/{get_text(database.body, 'metadata', 'name')}", user)
