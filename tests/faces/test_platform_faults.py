"""What goes wrong with the platforms of the examples: the cause is in what is told.

Each case is one of the troubleshooting of a platform's own page: by its engine's rules, and ours.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from examples.encrypt import KEY, encrypt_example, own_identity
from examples.seal import seal_example
from tests.fakes.tidegate_runs import ROOT, tidegate

GATE_STAYED_SHUT = 4


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies with keys of their own."""
    ignored = shutil.ignore_patterns(".keys", "sealed.yaml", "*.enc.yaml")
    folder = tmp_path_factory.mktemp("examples")
    for name in ("fineract", "layers"):
        shutil.copytree(ROOT / "examples" / name, folder / name, ignore=ignored)
    seal_example(folder / "fineract")
    encrypt_example(folder / "layers")
    return folder


FAULTS = {
    "the lock is held": ("fineract", "lock-held", "fineract-schema-migration: Job has reached"),
    "the realm is missing": ("fineract", "realm-missing", "wait-for-fineract-realm: CrashLoop"),
    "pods stay in init": ("fineract", "schema-not-ready", "wait-for-schema-migration: Init:0/1"),
    "a volume is not bound": ("layers", "volume-unbound", "unbound immediate PersistentVolume"),
    "the cluster is full": ("layers", "cluster-full", "Insufficient memory"),
    "a database fails": ("layers", "database-fails", "container redis: CrashLoopBackOff"),
}


@pytest.mark.parametrize("verb", ["simulate", "sync"])
@pytest.mark.parametrize(("name", "scenario", "cause"), FAULTS.values(), ids=FAULTS)
def test_the_cause_is_told(examples: Path, verb: str, name: str, scenario: str, cause: str) -> None:
    root = examples / name
    words = ("--sandbox",) if verb == "sync" else ()
    file = root / "scenarios" / f"{scenario}.yaml"

    ran = tidegate(
        verb, root, *words, "--scenario", file, SOPS_AGE_KEY_FILE=str(examples / "layers" / KEY)
    )

    assert ran.returncode == GATE_STAYED_SHUT, ran.stderr
    assert cause in ran.stdout
    if (verb, scenario) == ("sync", "lock-held"):
        assert "log      liquibase.exception.LockException: Could not acquire" in ran.stdout


def layers_with(examples: Path, folder: Path) -> Path:
    return Path(shutil.copytree(examples / "layers", folder / "layers"))


def test_a_wrong_key_is_told_with_the_file_and_the_recipient(
    examples: Path, tmp_path: Path
) -> None:
    own_identity(tmp_path / "other.agekey")

    ran = tidegate(
        "sync", examples / "layers", "--sandbox", SOPS_AGE_KEY_FILE=str(tmp_path / "other.agekey")
    )

    assert "none of the keys opens it; it is encrypted for `age age1" in ran.stderr
    assert "gitops/apps/redis/credentials.enc.yaml" in ran.stderr


def test_credentials_that_are_missing_hold_the_pods_that_read_them(
    examples: Path, tmp_path: Path
) -> None:
    root = layers_with(examples, tmp_path)
    listed = root / "gitops/apps/redis/kustomization.yaml"
    listed.write_text(listed.read_text().replace(", credentials.enc.yaml", ""))

    ran = tidegate("simulate", root, SOPS_AGE_KEY_FILE=str(root / KEY))

    assert ran.returncode == GATE_STAYED_SHUT
    assert "Secret cache/redis-credentials is not there" in ran.stdout


def test_keys_are_rotated_by_encrypting_again(examples: Path, tmp_path: Path) -> None:
    root = layers_with(examples, tmp_path)
    old = tmp_path / "old.agekey"
    shutil.move(root / KEY, old)
    encrypt_example(root)

    with_old = tidegate("plan", root, SOPS_AGE_KEY_FILE=str(old))
    with_new = tidegate("plan", root, SOPS_AGE_KEY_FILE=str(root / KEY))

    assert "none of the keys opens it" in with_old.stderr
    assert "none of the keys opens it" not in with_new.stderr
