"""Faults of the example platforms: the output names the cause.

Each case is from the troubleshooting section of a platform's documentation, with native and with
Tidegate semantics.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from examples.encrypt import KEY, encrypt_example, own_identity
from tests.support.in_process_cli import CommandResult, type_in
from tests.support.platforms import lay_out
from tests.support.recorded_wording import RecordedWording

NOT_KNOWN, GATE_STAYED_SHUT = 3, 4
UNREACHABLE_REPOSITORY = """---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: jetstack, namespace: cert-manager}
spec: {interval: 1h, url: "http://127.0.0.1:1"}
"""


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("examples"), "fineract", "layers")


FAULTS = {
    "the lock is held": ("fineract", "lock-held", "fineract-schema-migration: Job has reached"),
    "the realm is missing": ("fineract", "realm-missing", "wait-for-fineract-realm: CrashLoop"),
    "pods stay in init": ("fineract", "schema-not-ready", "wait-for-schema-migration: Init:0/1"),
    "a volume is not bound": ("layers", "volume-unbound", "unbound immediate PersistentVolume"),
    "the cluster is full": ("layers", "cluster-full", "Insufficient memory"),
    "credentials are wrong": ("layers", "credentials-wrong", "authentik-migrate: Job Failed."),
    "a database fails": ("layers", "database-fails", "redis: CrashLoopBackOff"),
}


PRINTED = {
    "lock-held": "liquibase.exception.LockException: Could not acquire",
    "credentials-wrong": "FATAL: password authentication failed for user",
}
VERBS = pytest.mark.parametrize("verb", ["simulate", "sync"])


@VERBS
@pytest.mark.parametrize(("name", "scenario", "cause"), FAULTS.values(), ids=FAULTS)
def test_the_cause_is_reported(
    examples: Path, verb: str, name: str, scenario: str, cause: str
) -> None:
    file = examples / name / "scenarios" / f"{scenario}.yaml"

    ran = played(verb, examples / name, "--scenario", file)

    assert ran.code == GATE_STAYED_SHUT, ran.stderr
    assert cause in ran.stdout
    if verb == "sync" and scenario in PRINTED:
        assert f"log      {PRINTED[scenario]}" in ran.stdout


@VERBS
def test_an_application_in_the_wrong_wave_is_found_and_held_by_what_it_waits_for(
    examples: Path, tmp_path: Path, verb: str
) -> None:
    root = Path(shutil.copytree(examples / "fineract", tmp_path / "fineract"))
    file = root / "argocd/applications/dev/oauth2-proxy.yaml"
    file.write_text(file.read_text().replace('sync-wave: "1"', 'sync-wave: "-2"'))

    key = examples / "layers" / KEY
    result, ran = type_in("lint", root), played(verb, root, key=key)

    assert any(
        "error[ORD006]" in line and "`fineract-dev/oauth2-proxy`" in line
        for line in result.stdout.splitlines()
    )
    assert ran.code == GATE_STAYED_SHUT
    assert "wait-for-fineract-realm: CrashLoopBackOff" in ran.stdout


def played(verb: str, root: Path, *args: str | Path, key: Path | None = None) -> CommandResult:
    """The verb on a simulated cluster, with the example's own key or another one."""
    example_key = root.parent / "layers" / KEY
    sandbox = ("--sandbox",) if verb == "sync" else ()
    return type_in(
        verb, root, *sandbox, *args, folder=root, SOPS_AGE_KEY_FILE=str(key or example_key)
    )


def layers_with(examples: Path, folder: Path) -> Path:
    return Path(shutil.copytree(examples / "layers", folder / "layers"))


@VERBS
def test_a_wrong_key_in_the_cluster_is_reported_with_the_file_and_the_recipient(
    examples: Path, verb: str
) -> None:
    scenario = examples / "layers" / "scenarios" / "age-key-wrong.yaml"

    ran = played(verb, examples / "layers", "--scenario", scenario)

    assert ran.code == NOT_KNOWN
    assert any(
        "warning[render.sops.wrong-key]" in line and "`age age1" in line
        for line in ran.stderr.splitlines()
    )
    assert "at gitops/apps/redis/credentials.enc.yaml" in ran.stderr
    assert any(
        "`flux-system/sops-age`" in line and "`age.agekey`" in line and "age1zvkyg2l" in line
        for line in ran.stderr.splitlines()
    )


@pytest.mark.parametrize("verb", ["render", "plan", "simulate", "sync"])
def test_no_command_passes_with_undecrypted_objects(
    wording: RecordedWording, examples: Path, tmp_path: Path, verb: str
) -> None:
    other = tmp_path / "other.agekey"
    own_identity(other)

    ran = played(verb, examples / "layers", key=other)

    assert ran.code == NOT_KNOWN
    wording(line for line in ran.stderr.splitlines() if "error[units.incomplete]" in line)
    assert ran.stderr.count("at gitops/apps/redis/credentials.enc.yaml") == 1, "reported once"


@VERBS
def test_a_missing_key_is_reported_with_its_secret(
    wording: RecordedWording, examples: Path, tmp_path: Path, verb: str
) -> None:
    nothing = tmp_path / "nothing.agekey"
    nothing.touch()

    ran = played(verb, examples / "layers", key=nothing)

    assert ran.code == 0
    wording(line for line in ran.stderr.splitlines() if "warning[units.incomplete]" in line)
    looked_at = [line for line in ran.stderr.splitlines() if "`flux-system/sops-age`" in line]
    wording(line.partition(", `/")[0] for line in looked_at)


@VERBS
def test_an_encrypted_file_without_metadata_is_not_applied_as_if_it_were_plain(
    examples: Path, tmp_path: Path, verb: str
) -> None:
    root = layers_with(examples, tmp_path)
    file = root / "gitops/apps/redis/credentials.enc.yaml"
    file.write_text(file.read_text().partition("sops:\n")[0])

    ran = played(verb, root)

    assert ran.code == NOT_KNOWN
    assert any(
        "warning[render.sops.metadata]" in line
        and "`Kustomization/flux-system/databases`" in line
        and "`sops`" in line
        for line in ran.stderr.splitlines()
    )
    assert "at gitops/apps/redis/credentials.enc.yaml:8:5 (stringData.password)" in ran.stderr


def layers_from_far(examples: Path, folder: Path) -> Path:
    """The platform, with an unreachable repository for the chart of cert-manager."""
    root = layers_with(examples, folder)
    file = root / "gitops/infrastructure/cert-manager/release.yaml"
    here = "{kind: GitRepository, name: flux-system, namespace: flux-system}"
    release = file.read_text().replace(here, "{kind: HelmRepository, name: jetstack}")
    named = release.replace("./charts/cert-manager", "cert-manager\n      version: v1.19.1")
    file.write_text(named + UNREACHABLE_REPOSITORY)
    return root


@VERBS
def test_an_unreachable_chart_repository_is_reported_with_its_units(
    wording: RecordedWording, examples: Path, tmp_path: Path, verb: str
) -> None:
    ran = played(verb, layers_from_far(examples, tmp_path))

    assert ran.code == (9 if verb == "simulate" else 0)
    assert any(
        "warning[units.unavailable]" in line
        and "`HelmRelease/cert-manager/cert-manager`" in line
        and "v1.19.1" in line
        and "http://127.0.0.1:1" in line
        and "Connect call failed" in line
        for line in ran.stderr.splitlines()
    )
    wording(line for line in ran.stderr.splitlines() if "warning[units.incomplete]" in line)


def test_skip_broken_reports_what_was_written_and_what_was_not(
    wording: RecordedWording, examples: Path, tmp_path: Path
) -> None:
    root = layers_from_far(examples, tmp_path)

    ran = played("sync", root, "--empty-cluster", "--skip-broken")

    assert ran.code == GATE_STAYED_SHUT
    wording(line for line in ran.lines if line.startswith(("x ", "  applied  ")))


@VERBS
def test_credentials_that_are_missing_hold_the_pods_that_read_them(
    wording: RecordedWording, examples: Path, tmp_path: Path, verb: str
) -> None:
    root = layers_with(examples, tmp_path)
    listed = root / "gitops/apps/redis/kustomization.yaml"
    listed.write_text(listed.read_text().replace(", credentials.enc.yaml", ""))

    ran = played(verb, root)

    assert ran.code == GATE_STAYED_SHUT
    reasons = (line for line in ran.lines if line.startswith("  why "))
    wording(line for line in reasons if "Secret cache/redis-credentials" in line)


def test_keys_are_rotated_by_encrypting_again(examples: Path, tmp_path: Path) -> None:
    root = layers_with(examples, tmp_path)
    old = tmp_path / "old.agekey"
    shutil.move(root / KEY, old)
    encrypt_example(root)

    with_old, with_new = played("plan", root, key=old), played("plan", root)

    assert "warning[render.sops.wrong-key]" in with_old.stderr
    assert (with_new.code, "render.sops.wrong-key" in with_new.stderr) == (0, False)
