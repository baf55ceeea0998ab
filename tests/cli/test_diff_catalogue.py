"""A catalogue of changes: each is reported by `tidegate diff` in its section, with its line."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.changed_repository import ChangedRepository, DiffDocument, changed_repository

REPOSITORY = Path(__file__).parents[1] / "data" / "diff_repository"
EXTRA = """
apiVersion: v1
kind: ConfigMap
metadata: {name: extra, namespace: shop}
"""
EXTRA_HOOK = """
apiVersion: batch/v1
kind: Job
metadata: {name: check, namespace: shop, annotations: {argocd.argoproj.io/hook: PreSync}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
"""


class Edit(NamedTuple):
    """A change of one file: a text and its replacement, or no text for the whole file."""

    file: str
    old: str
    new: str | None = ""
    """None deletes the file."""


class CatalogueEntry(NamedTuple):
    """A change, and what is reported about it."""

    name: str
    edits: tuple[Edit, ...]
    section: str
    """A list of the order in the JSON document, or `new_findings`."""
    expected: Mapping[str, object]
    line: str
    """The start of the location."""


def lost(gate: str, unit: str, subject: str = "") -> Mapping[str, object]:
    return {"change": "removed", "type": gate, "unit": unit, "subject": subject}


def gained(gate: str, unit: str, subject: str = "") -> Mapping[str, object]:
    return {"change": "added", "type": gate, "unit": unit, "subject": subject}


def moved(name: str, before: str, after: str) -> Mapping[str, object]:
    return {"name": name, "before": before, "after": after}


WEB, DATA, ROOT = (f"Application/argocd/{name}" for name in ("web", "data", "root"))
BASE, SHOP, JOBS = (f"Kustomization/flux-system/{name}" for name in ("base", "shop", "jobs"))
CATALOGUE = (
    CatalogueEntry(
        "a later wave of an Application",
        (Edit("apps/data.yaml", 'wave: "0"', 'wave: "2"'),),
        "moved",
        moved(DATA, "wave 0", "wave 2"),
        "apps/data.yaml:7:",
    ),
    CatalogueEntry(
        "two waves swapped",
        (
            Edit("apps/data.yaml", 'wave: "0"', 'wave: "1"'),
            Edit("apps/web.yaml", 'wave: "1"', 'wave: "0"'),
        ),
        "moved",
        {"type": "unit"},
        "apps/",
    ),
    CatalogueEntry(
        "a later wave of an object",
        (Edit("web/settings.yaml", 'wave: "-1"', 'wave: "2"'),),
        "moved",
        moved("ConfigMap shop/settings", "wave -1", "wave 2"),
        "web/settings.yaml:7:",
    ),
    CatalogueEntry(
        "a wave removed",
        (Edit("web/web.yaml", '    argocd.argoproj.io/sync-wave: "1"\n', "    a: b\n"),),
        "gates",
        lost("barrier", WEB, "between wave 0 and wave 1"),
        "web/web.yaml:",
    ),
    CatalogueEntry(
        "a hook before the sync made one after it",
        (Edit("web/migrate.yaml", "hook: PreSync", "hook: PostSync"),),
        "moved",
        moved("Job shop/migrate", "PreSync", "PostSync"),
        "web/migrate.yaml:7:",
    ),
    CatalogueEntry(
        "a hook after the sync made one before it",
        (Edit("web/notify.yaml", "hook: PostSync", "hook: PreSync"),),
        "moved",
        moved("Job shop/notify", "PostSync", "PreSync"),
        "web/notify.yaml:7:",
    ),
    CatalogueEntry(
        "a hook of Helm in another phase",
        (Edit("web/seed.yaml", "hook: pre-install", "hook: post-install"),),
        "moved",
        moved("Job shop/seed", "PreSync", "PostSync"),
        "web/seed.yaml:7:",
    ),
    CatalogueEntry(
        "wait removed",
        (Edit("clusters/base.yaml", "  wait: true\n"),),
        "gates",
        lost("wait", BASE),
        "clusters/base.yaml:6:",
    ),
    CatalogueEntry(
        "wait added",
        (Edit("clusters/jobs.yaml", "  prune: true\n", "  prune: true\n  wait: true\n"),),
        "gates",
        gained("wait", JOBS),
        "clusters/jobs.yaml:10:",
    ),
    CatalogueEntry(
        "a health check removed",
        (Edit("clusters/jobs.yaml", "  - {apiVersion: v1, kind: Pod, name: b, namespace: s}\n"),),
        "gates",
        lost("health check", JOBS, "Pod s/b"),
        "clusters/jobs.yaml:",
    ),
    CatalogueEntry(
        "a health check added",
        (
            Edit(
                "clusters/jobs.yaml",
                "name: b, namespace: s}\n",
                "name: b, namespace: s}\n  - {apiVersion: v1, kind: Pod, name: c, namespace: s}\n",
            ),
        ),
        "gates",
        gained("health check", JOBS, "Pod s/c"),
        "clusters/jobs.yaml:15:",
    ),
    CatalogueEntry(
        "a health expression removed",
        (
            Edit(
                "clusters/shop.yaml",
                "  healthCheckExprs:\n  - apiVersion: example.com/v1\n    kind: Thing\n"
                "    current: status.ready == true\n",
            ),
        ),
        "gates",
        lost("health expression", SHOP, "Thing"),
        "clusters/shop.yaml:6:",
    ),
    CatalogueEntry(
        "dependsOn dropped",
        (Edit("clusters/shop.yaml", "  dependsOn:\n  - name: base\n"),),
        "gates",
        lost("dependsOn", SHOP, BASE),
        "clusters/shop.yaml:6:",
    ),
    CatalogueEntry(
        "dependsOn added",
        (Edit("clusters/jobs.yaml", "  - name: base\n", "  - name: base\n  - name: shop\n"),),
        "gates",
        gained("dependsOn", JOBS, SHOP),
        "clusters/jobs.yaml:18:",
    ),
    CatalogueEntry(
        "dependsOn of another unit",
        (Edit("clusters/jobs.yaml", "  - name: base\n", "  - name: shop\n"),),
        "gates",
        lost("dependsOn", JOBS, BASE),
        "clusters/jobs.yaml:",
    ),
    CatalogueEntry(
        "a unit suspended",
        (Edit("clusters/base.yaml", "  prune: true\n", "  prune: true\n  suspend: true\n"),),
        "gates",
        lost("reconciliation", BASE),
        "clusters/base.yaml:10:",
    ),
    CatalogueEntry(
        "a hook deleted",
        (Edit("web/migrate.yaml", "", None),),
        "gates",
        lost("hook", WEB, "Job shop/migrate"),
        "apps/web.yaml:",
    ),
    CatalogueEntry(
        "a hook made an ordinary object",
        (Edit("web/migrate.yaml", "    argocd.argoproj.io/hook: PreSync\n", "    a: b\n"),),
        "gates",
        lost("hook", WEB, "Job shop/migrate"),
        "web/migrate.yaml:",
    ),
    CatalogueEntry(
        "a hook added",
        (Edit("web/check.yaml", "", EXTRA_HOOK),),
        "gates",
        gained("hook", WEB, "Job shop/check"),
        "web/check.yaml:2:",
    ),
    CatalogueEntry(
        "a readiness probe removed",
        (Edit("web/api.yaml", "        readinessProbe: {tcpSocket: {port: 80}}\n"),),
        "gates",
        lost("probe", WEB, "readinessProbe of `api` of Deployment shop/api"),
        "web/api.yaml:",
    ),
    CatalogueEntry(
        "a startup probe added",
        (
            Edit(
                "web/api.yaml",
                "        readinessProbe",
                "        startupProbe: {tcpSocket: {port: 80}}\n        readinessProbe",
            ),
        ),
        "gates",
        gained("probe", WEB, "startupProbe of `api` of Deployment shop/api"),
        "web/api.yaml:18:",
    ),
    CatalogueEntry(
        "the health rule for Applications removed",
        (Edit("argocd/argocd-cm.yaml", "health.argoproj.io_Application", "health.example.com_X"),),
        "gates",
        lost("child units", ROOT),
        "root.yaml:",
    ),
    CatalogueEntry(
        "the health rule for a kind removed",
        (Edit("argocd/argocd-cm.yaml", "health.example.com_Thing", "health.example.com_Other"),),
        "gates",
        lost("health rule", WEB, "Thing"),
        "apps/web.yaml:",
    ),
    CatalogueEntry(
        "the health rule for a kind added",
        (
            Edit(
                "argocd/argocd-cm.yaml",
                "\ndata:\n",
                "\ndata:\n  resource.customizations.health.example.com_Gadget: |\n"
                "    return {status = 'Healthy'}\n",
            ),
        ),
        "gates",
        gained("health rule", WEB, "Gadget"),
        "argocd/argocd-cm.yaml:9:",
    ),
    CatalogueEntry(
        "a reference added",
        (
            Edit(
                "web/web.yaml",
                "        - configMapRef: {name: settings}\n",
                "        - configMapRef: {name: settings}\n        - configMapRef: {name: more}\n",
            ),
        ),
        "dependencies",
        {"change": "added", "dependent": "Deployment shop/web", "provider": "ConfigMap shop/more"},
        "web/web.yaml:21:",
    ),
    CatalogueEntry(
        "a reference removed",
        (Edit("web/web.yaml", "        - configMapRef: {name: settings}\n", ""),),
        "dependencies",
        {"change": "removed", "provider": "ConfigMap shop/settings"},
        "web/web.yaml:20:",
    ),
    CatalogueEntry(
        "an Application deleted",
        (Edit("apps/data.yaml", "", None),),
        "unit_changes",
        {"change": "removed", "unit": DATA},
        "apps/data.yaml:1:",
    ),
    CatalogueEntry(
        "a Kustomization deleted",
        (Edit("clusters/jobs.yaml", "", None),),
        "unit_changes",
        {"change": "removed", "unit": JOBS},
        "clusters/jobs.yaml:1:",
    ),
    CatalogueEntry(
        "an Application renamed",
        (Edit("apps/data.yaml", "name: data\n", "name: database\n"),),
        "unit_changes",
        {"change": "renamed", "unit": "Application/argocd/database", "old_unit": DATA},
        "apps/data.yaml:1:",
    ),
    CatalogueEntry(
        "a cycle",
        (Edit("clusters/base.yaml", "  wait: true\n", "  dependsOn:\n  - name: shop\n"),),
        "new_findings",
        {"code": "ORD002", "severity": "error"},
        "clusters/",
    ),
    CatalogueEntry(
        "a dependency on nothing",
        (Edit("clusters/shop.yaml", "  - name: base\n", "  - name: bass\n"),),
        "new_findings",
        {"code": "ORD001", "severity": "error"},
        "clusters/shop.yaml:12:",
    ),
    CatalogueEntry(
        "a hook that needs what comes after it",
        (Edit("web/migrate.yaml", "name: early", "name: settings"),),
        "new_findings",
        {"code": "ORD004", "severity": "error"},
        "web/migrate.yaml:17:",
    ),
)


@pytest.fixture
def repository(tmp_path: Path) -> ChangedRepository:
    shutil.copytree(REPOSITORY, tmp_path / "fleet")
    return changed_repository(tmp_path / "fleet", {})


def test_the_catalogue_has_thirty_entries() -> None:
    assert len({entry.name for entry in CATALOGUE}) >= 30


@pytest.mark.parametrize("entry", CATALOGUE, ids=[entry.name for entry in CATALOGUE])
def test_a_change_is_in_its_section_with_its_line(
    repository: ChangedRepository, entry: CatalogueEntry
) -> None:
    for edit in entry.edits:
        if edit.new is None:
            repository.remove(edit.file)
        elif edit.old:
            repository.replace(edit.file, edit.old, edit.new)
        else:
            repository.write(edit.file, edit.new)

    document = repository.diff("--exit-code")

    matches = [
        item
        for item in section_of(document, entry.section)
        if all(getattr(item, name) == value for name, value in entry.expected.items())
    ]
    assert matches, document
    assert str(getattr(matches[0], "location")).startswith(entry.line), matches[0]  # noqa: B009 - of any section
    has_error = any(finding.severity == "error" for finding in document.new_findings)
    assert repository.code == (3 if has_error else 10)


def section_of(document: DiffDocument, name: str) -> list[object]:
    return list(getattr(document if name == "new_findings" else document.order, name))


HARMLESS = (
    ("files renamed", lambda root: (root / "web/web.yaml").rename(root / "web/z.yaml")),
    (
        "waves renumbered",
        lambda root: [
            path.write_text(path.read_text().replace('wave: "', 'wave: "1'))
            for path in (root / "apps").glob("*.yaml")
        ],
    ),
    (
        "comments and another style",
        lambda root: [
            path.write_text("# A comment.\n\n" + path.read_text().replace("name: ", "name:   "))
            for path in root.rglob("*.yaml")
        ],
    ),
    (
        "another image",
        lambda root: (root / "web/web.yaml").write_text(
            (root / "web/web.yaml").read_text().replace("shop:1", "shop:2")
        ),
    ),
    ("an object without relations", lambda root: (root / "web/extra.yaml").write_text(EXTRA)),
)


@pytest.mark.parametrize(("name", "change"), HARMLESS, ids=[name for name, _ in HARMLESS])
def test_a_harmless_change_keeps_the_order(
    repository: ChangedRepository, name: str, change: object
) -> None:
    assert name
    assert callable(change)
    change(repository.root)

    document = repository.diff("--exit-code")

    assert document.same_order, document
    assert repository.code == 0
