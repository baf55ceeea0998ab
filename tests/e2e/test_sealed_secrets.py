"""The code of sealed-secrets opens the values of the example with its key, and with no other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from examples.seal import KEY, SEALED, TEMPLATES, own_key, seal_example
from tests.support.sealing import OpenedValue, SealedValue, open_sealed
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_mapping, get_text

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]  # the program is built once

FINERACT = Path(__file__).parents[2] / "examples" / "fineract"


def sealed_in(root: Path, key: str) -> dict[tuple[str, str], SealedValue]:
    """By Secret and entry, each value that is sealed there."""
    result = {}
    for file in sorted(root.rglob(SEALED)):
        for document in read_documents(file.read_bytes(), file.name):
            name = "/".join(
                get_text(document.body, "metadata", part) for part in ("namespace", "name")
            )
            for entry, value in get_mapping(document.body, "spec", "encryptedData").items():
                result[name, entry] = SealedValue(key, name, str(value))
    return result


def test_each_sealed_value_opens_for_its_secret_and_differs_when_sealed_again(
    tmp_path: Path,
) -> None:
    root = tmp_path / "fineract"
    for file in (FINERACT / TEMPLATES).rglob("*.yaml"):
        template = root / file.relative_to(FINERACT)
        template.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, template)
        (root / template.relative_to(root / TEMPLATES).with_suffix("")).mkdir(parents=True)

    seal_example(root)
    key = (root / KEY).read_text()
    first = sealed_in(root, key)
    seal_example(root)
    second = sealed_in(root, key)
    own_key(tmp_path / "other.pem")
    stolen = [
        *(
            SealedValue((tmp_path / "other.pem").read_text(), item.label, item.sealed)
            for item in first.values()
        ),
        *(SealedValue(key, "fineract-dev/somebody-else", item.sealed) for item in first.values()),
    ]

    opened = dict(zip(first, open_sealed(first.values()), strict=True))
    anew = dict(zip(second, open_sealed(second.values()), strict=True))

    assert {name for name, item in opened.items() if item.refused} == set()
    assert opened["fineract-dev/fineract-db-credentials", "username"] == OpenedValue("fineract")
    changed = {name for name, item in opened.items() if item != anew[name]}
    fixed = {"username", "KC_BOOTSTRAP_ADMIN_USERNAME", "KC_DB_USERNAME", "OAUTH2_PROXY_CLIENT_ID"}
    assert changed == {(name, entry) for name, entry in first if entry not in fixed}
    assert {item.opened for item in open_sealed(stolen)} == {""}
