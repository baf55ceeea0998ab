"""SOPS: what is opened with which keys, and what is said where none fits."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.conformance.flux.stage import case, lines_with
from tests.support.canary_search import left_in_memory
from tests.support.flux_repository import Layers
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import namespace
from tests.support.sops_program import AgeKey, encrypt
from tidegate.model.k8s.objects import Json, JsonObject

CANARY = "kea-winters-in-the-alps"
SECRET = f"""\
apiVersion: v1
kind: Secret
metadata:
  name: plain
stringData:
  motto: {CANARY}
"""
DECRYPTION: Json = {"provider": "sops", "secretRef": {"name": "sops-age"}}
RULE = ("--encrypted-regex", "^(data|stringData)$")


@pytest.fixture(scope="module")
def key() -> AgeKey:
    return AgeKey.generate()


@pytest.fixture
def layers(tmp_path: Path, key: AgeKey) -> Layers:
    """An encrypted Secret in the directory of a unit."""
    made = Layers(tmp_path / "platform")
    file = made.write("apps/secret.yaml", "")
    file.write_bytes(encrypt(file, SECRET, key, *RULE))
    made.unit("apps", decryption=DECRYPTION)
    return made


def keys(**entries: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sops-age", "namespace": "flux-system"},
        "stringData": dict(entries),
    }


@case(45)
def test_an_encrypted_secret_of_a_unit_without_decryption_is_rejected(
    layers: Layers, key: AgeKey
) -> None:
    layers.unit("apps")

    ran = layers.run("sync", "--sandbox", SOPS_AGE_KEY=key.identity)

    assert ran.returncode == 3
    assert "error[render.sops.not-requested]" in ran.stderr
    assert "at apps/secret.yaml:1:1" in ran.stderr


@case(56)
def test_encrypted_secrets_generator_inputs_and_patches_are_decrypted_and_not_printed(
    layers: Layers, key: AgeKey
) -> None:
    env = layers.write("apps/shop.env", "")
    env.write_bytes(encrypt(env, f"PASSWORD={CANARY}\n", key))
    patch = layers.write("apps/patch.yaml", "")
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  motto: {CANARY}\n"
    patch.write_bytes(encrypt(patch, text, key, "--encrypted-regex", "^data$"))
    layers.write("apps/web.yaml", text.replace(CANARY, "none"))
    layers.write(
        "apps/kustomization.yaml",
        "resources: [secret.yaml, web.yaml]\npatches: [{path: patch.yaml}]\n"
        "secretGenerator: [{name: made, envs: [shop.env]}]\n",
    )
    layers.more = [keys(**{"age.agekey": key.identity})]

    twice = [layers.render("apps") for _ in range(2)]

    assert [item.returncode for item in twice] == [0, 0], twice[0].stderr
    assert twice[0].stdout == twice[1].stdout
    assert "sops" not in twice[0].stdout
    assert '"name":"made-' in twice[0].stdout
    messages = [item.stdout + item.stderr for item in twice]
    assert not any(CANARY in item or key.identity in item for item in messages)
    assert "render.sops" not in twice[0].stderr


@case(57)
def test_the_secret_of_a_unit_takes_precedence_over_the_keys_of_the_user(
    layers: Layers, key: AgeKey
) -> None:
    wrong = AgeKey.generate()
    result = layers.render("apps", SOPS_AGE_KEY=key.identity)
    layers.more = [keys(**{"age.agekey": wrong.identity})]

    other = layers.run("plan", "--offline", SOPS_AGE_KEY=key.identity)

    assert result.returncode == 0
    assert "render.sops" not in result.stderr
    assert "warning[render.sops.wrong-key]" in other.stderr
    assert "at apps/secret.yaml:1:1" in other.stderr
    assert lines_with(other.stderr, "render.sops.wrong-key", f"`age {key.recipient}`")
    looked_at = "Secret `flux-system/sops-age` (`age.agekey`)"
    assert lines_with(other.stderr, "  hint: ", looked_at, wrong.recipient)
    assert wrong.identity not in other.stdout + other.stderr


@case(58)
def test_an_entry_that_flux_ignores_is_reported(layers: Layers, key: AgeKey) -> None:
    layers.more = [keys(**{"age.key": key.identity})]

    ran = layers.run("plan", "--offline")

    assert "warning[render.sops.key]" in ran.stderr
    assert lines_with(ran.stderr, "  hint: ", "`.agekey`", "`.asc`", "`age.key`")
    assert key.identity not in ran.stdout + ran.stderr


def test_a_missing_decryption_secret_is_reported_with_all_searched_locations(
    layers: Layers, key: AgeKey, wording: RecordedWording
) -> None:
    ran = layers.run("plan", "--offline")

    assert lines_with(ran.stderr, "warning[render.sops.key]", f"`age {key.recipient}`")
    assert lines_with(ran.stderr, "  hint: ", "Secret `flux-system/sops-age`", "`SOPS_AGE_KEY`")
    wording(line for line in ran.stderr.splitlines() if "sops-age" in line)


def test_an_invalid_key_and_a_file_without_sops_metadata_are_reported(
    layers: Layers, key: AgeKey
) -> None:
    layers.more = [keys(**{"age.agekey": key.recipient})]
    garbage = layers.run("plan", "--offline")
    layers.more = [keys(**{"age.agekey": key.identity})]
    file = layers.root / "apps/secret.yaml"
    before = file.read_text()
    file.write_text(before.replace("mac: ENC", "mac_gone: ENC"))

    sealed = layers.run("plan", "--offline")

    assert "error[render.sops.identity]" in garbage.stderr
    assert "at Secret `flux-system/sops-age` (age.agekey)" in garbage.stderr
    assert "ENC[" not in sealed.stdout
    assert CANARY not in sealed.stdout + sealed.stderr


def test_decrypted_values_are_in_no_output_and_in_no_file(
    layers: Layers, key: AgeKey, tmp_path: Path
) -> None:
    """Cache, plans, events: wherever a run could leave it."""
    user_home = tmp_path / "home"
    user_home.mkdir()
    layers.more = [namespace("flux-system"), keys(**{"age.agekey": key.identity})]
    layers.unit("other", path="./apps", into="flux-system", decryption=DECRYPTION)
    words = (
        ("plan", "--offline"),
        ("plan", "--offline", "-o", "json"),
        ("sync", "--sandbox", "-o", "json"),
        ("simulate", "--engine", "flux,tidegate", "-o", "json"),
    )

    ran = [layers.run(*word, HOME=str(user_home)) for word in words]

    assert [item.returncode for item in ran] == [0] * len(words), [item.stderr for item in ran]
    result = "".join(item.stdout + item.stderr for item in ran)
    hidden = (CANARY, base64.b64encode(CANARY.encode()).decode(), key.identity)
    assert not [item for item in hidden if item in result]
    files = [path for path in user_home.rglob("*") if path.is_file()]
    left = [path for path in files if any(item.encode() in path.read_bytes() for item in hidden)]
    assert left == []
    kept = [path for folder in left_in_memory() for path in folder.rglob("*")]
    assert not [item for item in kept if holds(item, hidden)]


def holds(path: Path, hidden: tuple[str, ...]) -> bool:
    """Whether a file has one of these in it."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return any(item.encode() in content for item in hidden)
