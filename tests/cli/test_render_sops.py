"""`tidegate render` of overlays whose generators and patches read encrypted files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sops_program import AgeKey, encrypt
from tests.support.tidegate_command import CommandResult, Tidegate

CANARY = "kea-winters-in-the-alps"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: plain\nstringData:\n  motto: {text}\n"
GENERATOR = """resources: [config.yaml]
secretGenerator:
- name: files
  files: [settings.yaml, token]
- name: variables
  envs: [shop.env]
patches:
- path: patch.yaml
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  colour: blue\n"
PATCH = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  motto: {CANARY}\n"
FILES = {
    "settings.yaml": f"password: {CANARY}\n",
    "token": CANARY,
    "shop.env": f"PASSWORD={CANARY}\n",
}


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


def write_overlay(place: Path, key: AgeKey | None = None) -> Path:
    """The overlay with its files as they are, or encrypted."""
    place.mkdir(parents=True)
    (place / "kustomization.yaml").write_text(GENERATOR)
    (place / "config.yaml").write_text(CONFIG)
    for name, text in FILES.items():
        content = text.encode() if key is None else encrypt(place / name, text, key)
        (place / name).write_bytes(content)
    rule = ("--encrypted-regex", "^data$")
    patch = PATCH.encode() if key is None else encrypt(place / "patch.yaml", PATCH, key, *rule)
    (place / "patch.yaml").write_bytes(patch)
    return place


def files_with(text: str, place: Path) -> list[Path]:
    return [
        path for path in place.rglob("*") if path.is_file() and text.encode() in path.read_bytes()
    ]


async def rendered(
    tidegate: Tidegate, place: Path, key: AgeKey | None, *more: str
) -> CommandResult:
    identity = key.identity if key else ""
    return await tidegate.run("render", place, *more, SOPS_AGE_KEY=identity)


async def test_generated_secrets_are_named_by_what_is_inside_the_files(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    key = AgeKey.generate()
    plain, sealed = write_overlay(tmp_path / "plain"), write_overlay(tmp_path / "sealed", key)

    expected = await rendered(tidegate, plain, key, "-o", "names")
    ran = await rendered(tidegate, sealed, key, "-o", "names")

    assert (ran.code, ran.stderr) == (0, "")
    assert ran.lines == expected.lines
    assert len(ran.lines) == 3


async def test_decrypted_values_are_neither_printed_nor_cached(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    key = AgeKey.generate()
    overlay = write_overlay(tmp_path / "sealed", key)

    first = await rendered(tidegate, overlay, key)
    again = await rendered(tidegate, overlay, key)

    assert CANARY not in first.stdout + first.stderr
    assert 'motto: "***"' in first.stdout
    assert "colour: blue" in first.stdout
    assert again.stdout == first.stdout
    assert again.started > 0, "what was opened is not remembered"
    assert files_with(CANARY, tidegate.user_home) == []
    assert files_with(CANARY, tmp_path) == []


async def test_an_encrypted_object_is_kept_encrypted(tidegate: Tidegate, tmp_path: Path) -> None:
    key = AgeKey.generate()
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text("resources: [secret.yaml]\n")
    text = SECRET.format(text=CANARY)
    sealed = encrypt(overlay / "secret.yaml", text, key, "--encrypted-regex", "^stringData$")
    (overlay / "secret.yaml").write_bytes(sealed)

    first = await rendered(tidegate, overlay, key)
    again = await rendered(tidegate, overlay, key)
    locked = await rendered(tidegate, overlay, None)

    assert (first.code, first.stderr) == (0, "")
    assert (again.started, again.stdout) == (0, first.stdout)
    assert files_with(CANARY, tidegate.user_home) == []
    assert "warning[render.sops.key]" in locked.stderr, "a cached object still needs its key"


async def test_without_a_key_values_are_replaced_by_placeholders(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    overlay = write_overlay(tmp_path / "sealed", AgeKey.generate())

    ran = await rendered(tidegate, overlay, None, "-o", "names")

    assert ran.code == 0
    assert len(ran.lines) == 3
    assert ran.stderr.count("warning[render.sops.key]") == 1
    assert ran.stderr.count(f"  at {overlay}/") == 3
    result = ran.stderr.split()
    assert {str(overlay / "shop.env"), str(overlay / "patch.yaml")} <= {*result}


async def test_a_file_that_was_changed_by_hand_is_reported(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    key = AgeKey.generate()
    overlay = write_overlay(tmp_path / "sealed", key)
    patch = overlay / "patch.yaml"
    patch.write_text(patch.read_text().replace("name: web", "name: web\n    labels: {a: b}", 1))

    ran = await rendered(tidegate, overlay, key, "-o", "names")

    assert (ran.code, len(ran.lines)) == (0, 3)
    assert "warning[render.sops.mac]" in ran.stderr
    assert f"at {patch}" in ran.stderr


async def test_the_seal_of_an_objects_own_file_is_verified(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    key = AgeKey.generate()
    folder = tmp_path / "manifests"
    folder.mkdir()
    secret = folder / "secret.yaml"
    text = SECRET.format(text=CANARY)
    sealed = encrypt(secret, text, key, "--encrypted-regex", "^stringData$").decode()
    secret.write_text(sealed.replace("name: plain", "name: other"))

    ran = await rendered(tidegate, folder, key, "-o", "names")

    assert (ran.code, ran.lines) == (0, ["v1 Secret other"])
    assert "warning[render.sops.mac]" in ran.stderr
    assert f"at {secret}" in ran.stderr


SERVICE = "    kms:\n        - {arn: 'arn:aws:kms:eu:1:key/shop', created_at: now, enc: abc}\n"


async def test_offline_no_key_service_is_used(tidegate: Tidegate, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    text, rule = SECRET.format(text=CANARY), ("--encrypted-regex", "^stringData$")
    sealed = encrypt(folder / "secret.yaml", text, AgeKey.generate(), *rule).decode()
    (folder / "secret.yaml").write_text(sealed.replace("sops:\n", f"sops:\n{SERVICE}"))
    program = tmp_path / "bin" / "sops"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 128\n")
    program.chmod(0o755)

    online = await tidegate.run("render", folder, PATH=str(program.parent))
    offline = await tidegate.run("render", folder, "--offline", PATH=str(program.parent))

    assert online.started > 0
    assert offline.started == 0
    assert (offline.code, offline.stdout) == (0, online.stdout)
    assert "warning[render.sops.offline]" in offline.stderr
    assert "`kms arn:aws:kms:eu:1:key/shop`" in offline.stderr
