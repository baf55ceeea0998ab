"""`tidegate diff` from outside: what a change does to the order of a repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.support.changed_repository import (
    ChangedRepository,
    DiffDocument,
    DiffSteps,
    changed_repository,
)
from tests.support.file_trees import (
    GIT_REPOSITORY,
    application,
    config_map,
    kustomization,
    run_git,
    write_files,
)
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import tidegate, tidegate_in

WAIT = '"wait": true'


@pytest.fixture
def repository(tmp_path: Path) -> ChangedRepository:
    """A repository with a root Application of two waves, and three Kustomizations in a row."""
    return changed_repository(
        tmp_path / "fleet",
        {
            "root.yaml": application("root", "apps", namespace="argocd"),
            "apps/data.yaml": application("data", "data", wave="0"),
            "apps/web.yaml": application("web", "web", wave="1"),
            "data/settings.yaml": config_map("settings"),
            "web/page.yaml": config_map("page"),
            "clusters/flux-system.yaml": GIT_REPOSITORY
            + kustomization("flux-system", "./clusters"),
            "clusters/base.yaml": kustomization("base", "./base", more=WAIT),
            "clusters/shop.yaml": kustomization(
                "shop", "./shop", more=f'{WAIT}, "dependsOn": [{{"name": "base"}}]'
            ),
            "base/base.yaml": config_map("base"),
            "shop/shop.yaml": config_map("shop"),
        },
    )


def test_a_repository_without_changes_has_the_same_order(repository: ChangedRepository) -> None:
    ran = tidegate("diff", repository.root)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("same order as main (")
    assert len(ran.stdout.splitlines()) == 1


def test_an_image_is_not_a_change_of_the_order(repository: ChangedRepository) -> None:
    repository.write("web/page.yaml", config_map("page") + "data: {colour: green}\n")

    assert len(tidegate("diff", repository.root, "--exit-code").stdout.splitlines()) == 1


def test_a_moved_unit_is_reported_with_the_line_that_moved_it(
    repository: ChangedRepository,
) -> None:
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "3"')

    document = repository.diff()

    (move,) = document.order.moved
    assert (move.type, move.unit) == ("unit", "Application/argocd/data")
    assert (move.before, move.after) == ("wave 0", "wave 3")
    assert str(move.location).startswith("apps/data.yaml:4:")
    assert move.base_location == move.location


def test_renumbered_waves_keep_the_order(repository: ChangedRepository) -> None:
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "10"')
    repository.replace("apps/web.yaml", 'sync-wave: "1"', 'sync-wave: "20"')

    document = repository.diff("--exit-code")

    order = document.order
    assert (order.moved, order.same_order, repository.code) == ([], True, 0)
    assert order.renumbered[0].steps == [
        DiffSteps("wave 0", "wave 10"),
        DiffSteps("wave 1", "wave 20"),
    ]
    assert len(tidegate("diff", repository.root).stdout.splitlines()) == 1


def test_a_lost_wait_names_the_units_that_start_earlier(repository: ChangedRepository) -> None:
    repository.write("clusters/base.yaml", kustomization("base", "./base"))

    (gate,) = repository.diff().order.gates
    assert (gate.change, gate.type) == ("removed", "wait")
    assert gate.waiting == ["Kustomization/flux-system/shop"]
    assert str(gate.location).startswith("clusters/base.yaml:")


def test_a_dropped_depends_on_is_a_lost_gate(repository: ChangedRepository) -> None:
    repository.write("clusters/shop.yaml", kustomization("shop", "./shop", more=WAIT))

    document = repository.diff("--exit-code")

    (gate,) = document.order.gates
    assert (gate.change, gate.type) == ("removed", "dependsOn")
    assert gate.subject == "Kustomization/flux-system/base"
    assert gate.waiting == ["Kustomization/flux-system/shop"]
    assert repository.code == 10


def test_a_new_deadlock_is_an_error_of_the_change_alone(repository: ChangedRepository) -> None:
    repository.write(
        "clusters/base.yaml",
        kustomization("base", "./base", more=f'{WAIT}, "dependsOn": [{{"name": "shop"}}]'),
    )

    document = repository.diff()

    errors = [entry for entry in document.new_findings if entry.severity == "error"]
    assert [entry.code for entry in errors] == ["ORD002"]
    assert errors[0].sequence
    assert repository.code == 3


def test_an_error_that_the_base_has_is_not_reported(repository: ChangedRepository) -> None:
    circle = kustomization("base", "./base", more=f'{WAIT}, "dependsOn": [{{"name": "shop"}}]')
    repository.write("clusters/base.yaml", circle)
    repository.commit()

    repository.write("clusters/base.yaml", "# The first layer.\n" + circle)
    document = repository.diff()
    repository.write("clusters/base.yaml", kustomization("base", "./base", more=WAIT))
    fixed = repository.diff()

    assert document.new_findings == []
    assert repository.code == 0
    assert "ORD002" in [entry.code for entry in fixed.fixed_findings]


def test_a_removed_unit_says_what_is_deleted_and_what_needs_it(
    repository: ChangedRepository,
) -> None:
    crd = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: things.example.com}\n"
        "spec: {group: example.com, names: {kind: Thing, plural: things}, scope: Namespaced,"
        " versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema:"
        " {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n"
    )
    repository.write("base/crd.yaml", crd)
    repository.write(
        "shop/thing.yaml",
        "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, namespace: web}\n",
    )
    repository.commit()
    repository.remove("clusters/base.yaml")
    repository.write("clusters/shop.yaml", kustomization("shop", "./shop", more=WAIT))

    (change,) = repository.diff().order.unit_changes

    assert (change.change, change.unit) == ("removed", "Kustomization/flux-system/base")
    assert str(change.location).startswith("clusters/base.yaml:")
    assert change.removal is not None
    assert change.removal.deletes is True
    (need,) = change.removal.still_needed
    assert need.object.kind == "CustomResourceDefinition"
    assert need.needed_by == ["Thing web/a"]


def test_objects_of_a_removed_unit_are_kept_if_its_parent_does_not_prune(
    repository: ChangedRepository,
) -> None:
    repository.remove("apps/web.yaml")

    (change,) = repository.diff().order.unit_changes
    assert change.removal is not None
    assert change.removal.deletes is False
    assert "does not prune" in change.removal.kept_because


def test_a_renamed_unit_is_one_change(repository: ChangedRepository) -> None:
    repository.write("apps/web.yaml", application("website", "web", wave="1"))

    (change,) = repository.diff().order.unit_changes
    assert (change.change, change.old_unit, change.unit) == (
        "renamed",
        "Application/argocd/web",
        "Application/argocd/website",
    )


def test_two_commits_are_compared_without_the_working_tree(
    repository: ChangedRepository,
) -> None:
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "3"')
    repository.commit()
    repository.write("clusters/base.yaml", kustomization("base", "./base"))

    document = repository.diff("--base", "HEAD~1", "--head", "HEAD")

    order = document.order
    assert [move.unit for move in order.moved] == ["Application/argocd/data"]
    assert order.gates == []
    assert document.head.commit


def test_the_base_is_the_merge_base_with_the_default_branch(
    repository: ChangedRepository,
) -> None:
    run_git(repository.root, "checkout", "-q", "-b", "feature")
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "3"')
    repository.commit()
    run_git(repository.root, "checkout", "-q", "main")
    repository.remove("apps/web.yaml")
    repository.commit()
    run_git(repository.root, "checkout", "-q", "feature")

    document = repository.diff()

    order = document.order
    assert [move.unit for move in order.moved] == ["Application/argocd/data"]
    assert order.unit_changes == []
    assert document.base.name == "main"


def test_a_base_with_three_dots_is_the_merge_base(repository: ChangedRepository) -> None:
    run_git(repository.root, "checkout", "-q", "-b", "release")
    repository.remove("apps/web.yaml")
    repository.commit()
    run_git(repository.root, "checkout", "-q", "main")
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "3"')
    repository.commit()

    direct = repository.diff("--base", "release").order
    since_merge_base = repository.diff("--base", "release...", "--head", "HEAD").order

    assert [entry.change for entry in direct.unit_changes] == ["added"]
    assert since_merge_base.unit_changes == []
    assert len(since_merge_base.moved) == 1


def test_a_branch_that_was_pushed_is_compared_with_the_default_branch(
    repository: ChangedRepository, tmp_path: Path
) -> None:
    server = tmp_path / "server.git"
    run_git(tmp_path, "init", "--quiet", "--bare", str(server))
    run_git(repository.root, "remote", "set-url", "origin", server.as_uri())
    run_git(repository.root, "push", "--quiet", "--set-upstream", "origin", "main")
    run_git(repository.root, "checkout", "-q", "-b", "feature")
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "3"')
    repository.commit()
    run_git(repository.root, "push", "--quiet", "--set-upstream", "origin", "feature")

    document = repository.diff()

    assert document.base.name == "origin/main"
    assert len(document.order.moved) == 1


def test_the_working_tree_and_the_index_are_not_touched(repository: ChangedRepository) -> None:
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "3"')
    before = tree_state(repository.root)

    repository.diff()

    assert tree_state(repository.root) == before


def test_a_path_that_is_new_has_only_new_units(repository: ChangedRepository) -> None:
    repository.write("extra/one.yaml", application("one", "web"))

    ran = tidegate_in(repository.root, "diff", "extra", "-o", "json")

    order = msgspec.json.decode(ran.stdout, type=DiffDocument).order
    assert [entry.unit for entry in order.unit_changes] == ["Application/argocd/one"]


def test_a_path_that_is_gone_has_only_removed_units(repository: ChangedRepository) -> None:
    shutil.rmtree(repository.root / "apps")

    ran = tidegate_in(repository.root, "diff", "apps", "-o", "json")

    order = msgspec.json.decode(ran.stdout, type=DiffDocument).order
    assert [entry.change for entry in order.unit_changes] == ["removed", "removed"]


def test_a_kustomize_hash_is_not_another_object(repository: ChangedRepository) -> None:
    overlay = (
        "namespace: web\nresources: [web.yaml]\n"
        "configMapGenerator:\n- name: env\n  literals: [A={0}]\n"
    )
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: web}\n"
        "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},"
        " spec: {containers: [{name: a, image: b, envFrom: [{configMapRef: {name: env}}]}]}}}\n"
    )
    repository.write("shop/web.yaml", deployment)
    repository.write("shop/kustomization.yaml", overlay.format(1))
    repository.commit()
    repository.write("shop/kustomization.yaml", overlay.format(2))

    assert repository.diff().same_order is True


def test_submodules_and_lfs_pointers_are_listed(repository: ChangedRepository) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    repository.write("web/big.yaml", pointer)
    repository.write(".gitattributes", "*.yaml filter=lfs\n")
    repository.write(".gitmodules", '[submodule "extra"]\n\tpath = modules/extra\n\turl = ../x\n')
    (repository.root / "modules/extra").mkdir(parents=True)
    head = git_output(repository.root, "rev-parse", "HEAD").strip()
    run_git(repository.root, "update-index", "--add", "--cacheinfo", f"160000,{head},modules/extra")
    repository.commit()

    document = repository.diff("--base", "HEAD", "--head", "HEAD")

    assert {entry.code for entry in document.not_read} == {"units.lfs", "units.submodule"}
    assert {entry.location for entry in document.not_read} == {"modules/extra", "web/big.yaml"}


def test_a_filter_of_the_repository_does_not_run(
    repository: ChangedRepository, tmp_path: Path
) -> None:
    trace = tmp_path / "ran"
    run_git(repository.root, "config", "filter.x.smudge", f"touch {trace}; cat")
    repository.write(".gitattributes", "*.yaml filter=x\n")
    repository.commit()

    repository.diff("--base", "HEAD")

    assert not trace.exists()


@pytest.mark.parametrize(
    "revision",
    ["-x", "-x...", "--upload-pack=touch x", "nowhere", "nowhere...", "a b", "main:web", "a...b"],
)
def test_a_revision_that_is_none_is_one_error(repository: ChangedRepository, revision: str) -> None:
    ran = tidegate("diff", repository.root, f"--base={revision}")

    assert ran.returncode == 3
    assert ran.stdout == ""
    assert ran.stderr.startswith("error[source.git.revision]")


def test_a_repository_without_commits_is_one_error(tmp_path: Path) -> None:
    root = write_files(tmp_path / "new", {"a.yaml": config_map("a")})

    ran = tidegate("diff", root)

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[source.git.revision]")


def test_a_directory_outside_of_git_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(config_map("a"))

    ran = tidegate("diff", tmp_path)

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[source.git.none]")


def test_a_detached_head_is_compared_with_the_default_branch(
    repository: ChangedRepository,
) -> None:
    run_git(repository.root, "checkout", "-q", "--detach")
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "3"')

    assert len(repository.diff().order.moved) == 1


def test_a_shallow_clone_names_the_depth_to_fetch(
    repository: ChangedRepository, tmp_path: Path, wording: RecordedWording
) -> None:
    run_git(repository.root, "checkout", "-q", "-b", "feature")
    repository.write("web/page.yaml", config_map("other"))
    repository.commit()
    clone = tmp_path / "clone"
    options = ("--quiet", "--depth=1", "--no-single-branch", "--branch=feature")
    run_git(tmp_path, "clone", *options, repository.root.as_uri(), str(clone))

    by_default = tidegate("diff", clone, "--base", "HEAD~1")
    run_git(clone, "remote", "set-head", "origin", "main")
    merge_base = tidegate("diff", clone)

    assert (by_default.returncode, merge_base.returncode) == (3, 3)
    assert merge_base.stderr.startswith("error[source.git.base]")
    assert "fetch-depth: 0" in by_default.stderr
    wording(merge_base.stderr)


def test_a_checkout_of_one_commit_names_the_depth_to_fetch(
    repository: ChangedRepository, tmp_path: Path
) -> None:
    """As actions/checkout leaves it: a detached head, and no branch."""
    clone = tmp_path / "clone"
    clone.mkdir()
    run_git(clone, "init", "-q")
    run_git(clone, "fetch", "-q", "--depth=1", repository.root.as_uri(), "HEAD")
    run_git(clone, "checkout", "-q", "--detach", "FETCH_HEAD")

    ran = tidegate("diff", clone)

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[source.git.base]")
    assert "fetch-depth: 0" in ran.stderr


@pytest.mark.parametrize("address", ["-", "https://github.com/x/y.git"])
def test_an_address_has_no_revisions_to_compare(address: str) -> None:
    ran = tidegate("diff", address)

    assert ran.returncode == 2
    assert ran.stderr.startswith("error[usage.revisions]")


def git_output(root: Path, *words: str) -> str:
    command = ("/usr/bin/env", "git", *words)
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def tree_state(root: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(root.rglob("*"))}


APPLICATION_HEALTH = """apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
data:
  resource.customizations.health.argoproj.io_Application: |
    return {status = obj.status.health.status}
"""


def test_units_that_waited_for_a_removed_unit_are_affected(
    repository: ChangedRepository,
) -> None:
    repository.write("argocd/argocd-cm.yaml", APPLICATION_HEALTH)
    repository.commit()
    repository.remove("apps/data.yaml")

    (affected,) = repository.diff().order.affected
    assert affected.units == ["Application/argocd/web"]


def test_affected_units_are_listed_by_cluster(repository: ChangedRepository) -> None:
    repository.write("argocd/argocd-cm.yaml", APPLICATION_HEALTH)
    for name in ("east", "west"):
        text = application(f"page-{name}", "web", wave="2")
        repository.write(
            f"apps/page-{name}.yaml",
            text.replace('server: "https://kubernetes.default.svc"', f"name: {name}"),
        )
    repository.commit()
    repository.replace("apps/data.yaml", 'sync-wave: "0"', 'sync-wave: "1"')

    affected = {entry.cluster: entry.units for entry in repository.diff().order.affected}

    assert affected["east"] == ["Application/argocd/page-east"]
    assert affected["west"] == ["Application/argocd/page-west"]
