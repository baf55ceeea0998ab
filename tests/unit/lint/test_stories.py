"""Known ordering problems, and correct setups that look like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.in_process_lint import lint_at
from tests.support.manifest_texts import (
    SOURCE,
    application,
    config_map,
    kustomization,
    notes,
    pods,
    service,
)
from tests.support.rule_pages import write_files
from tidegate.model.finding import Severity

DATABASE = pods("Deployment", "db") + "---\n" + service("db")
LATE = pods("Deployment", "db", notes(3)) + "---\n" + service("db", notes(3))
EXTERNAL = """apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {{name: db, namespace: shop{note}}}
spec:
  secretStoreRef: {{kind: ClusterSecretStore, name: vault}}
  target: {{name: db}}
  data: [{{secretKey: password, remoteRef: {{key: db}}}}]
"""
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: web, namespace: shop{note}}}\n"
WITH_ACCOUNT = pods("Deployment", "web").replace(
    "      containers:", "      serviceAccountName: web\n      containers:"
)
STORIES = {
    "a migration hook before its database": (
        {"shop/migrate.yaml": pods("Job", "migrate", notes(hook="PreSync"), calls=("db",)),
         "shop/db.yaml": DATABASE},
        {("ORD004", "shop/migrate.yaml")},
    ),
    "a migration in a wave after its database": (
        {"shop/migrate.yaml": pods("Job", "migrate", notes(1), calls=("db",)),
         "shop/db.yaml": DATABASE},
        set(),
    ),
    "a ConfigMap of wave 5 that pods of wave 1 read": (
        {"shop/web.yaml": pods("Deployment", "web", notes(1), maps=("settings",)),
         "shop/settings.yaml": config_map("settings", notes(5))},
        {("ORD006", "shop/web.yaml")},
    ),
    "a Secret that an operator makes too late": (
        {"shop/web.yaml": pods("Deployment", "web", secrets=("db",)),
         "shop/db.yaml": EXTERNAL.format(note=notes(2))},
        {("ORD006", "shop/web.yaml")},
    ),
    "a Secret that an operator makes in time": (
        {"shop/web.yaml": pods("Deployment", "web", secrets=("db",)),
         "shop/db.yaml": EXTERNAL.format(note=notes(-1))},
        set(),
    ),
    "an account of a later wave": (
        {"shop/web.yaml": WITH_ACCOUNT, "shop/account.yaml": ACCOUNT.format(note=notes(2))},
        {("ORD006", "shop/web.yaml")},
    ),
    "an account of the same wave": (
        {"shop/web.yaml": WITH_ACCOUNT, "shop/account.yaml": ACCOUNT.format(note="")},
        set(),
    ),
    "an init container that waits for a later wave": (
        {"shop/web.yaml": pods("Deployment", "web", waits=("db",)), "shop/db.yaml": LATE},
        {("ORD006", "shop/web.yaml")},
    ),
    "an init container that waits for its own wave": (
        {"shop/web.yaml": pods("Deployment", "web", waits=("db",)), "shop/db.yaml": DATABASE},
        set(),
    ),
    "a server that calls one of a later wave": (
        {"shop/web.yaml": pods("Deployment", "web", calls=("db",)), "shop/db.yaml": LATE},
        set(),
    ),
    "the last wave, which Argo CD does not wait for": (
        {"shop/web.yaml": pods("Deployment", "web", notes(1), maps=("elsewhere",)),
         "shop/settings.yaml": config_map("settings")},
        set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
async def test_a_story_of_argo_cd(name: str, tmp_path: Path) -> None:
    files, result = STORIES[name]

    report = await lint_at(write_files(tmp_path, {"app.yaml": application(), **files}))

    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    assert {
        (error.code, error.location.name if error.location else "") for error in errors
    } == result
    assert all(error.location and error.location.line > 4 and error.sequence for error in errors)


@pytest.mark.parametrize(
    ("waits", "expected"), [(True, {"ORD006"}), (False, set())], ids=["wait", "no-wait"]
)
async def test_a_kustomization_that_needs_an_object_of_a_later_one(
    waits: bool,  # noqa: FBT001 - it is the case
    expected: set[str],
    tmp_path: Path,
) -> None:
    """One that waits for its pods is a deadlock; one that does not recovers, and is a note."""
    files = {
        "clusters/source.yaml": SOURCE,
        "clusters/apps.yaml": kustomization("apps", wait=waits),
        "clusters/secrets.yaml": kustomization("secrets", "apps"),
        "apps/web.yaml": pods("Deployment", "web", secrets=("db",), inside="default"),
        "secrets/db.yaml": config_map("db", kind="Secret", inside="default"),
    }

    report = await lint_at(write_files(tmp_path, files))

    by_code = {finding.code: finding for finding in report.findings}
    assert {
        finding.code for finding in report.findings if finding.severity is Severity.ERROR
    } == expected
    assert ("ORD003" in by_code) is not waits


async def test_a_dependency_outside_of_the_repository_is_no_deadlock(tmp_path: Path) -> None:
    web = pods("Deployment", "web", maps=("elsewhere",), secrets=("also-elsewhere",))
    files = {
        "app.yaml": application(),
        "shop/web.yaml": web,
        "shop/a.yaml": config_map("a", notes(9)),
    }

    report = await lint_at(write_files(tmp_path, files))

    assert [
        finding.code for finding in report.findings if finding.severity is not Severity.NOTE
    ] == ["ORD061", "ORD061"]
