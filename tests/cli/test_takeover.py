"""`--take-over` and `--hand-back`: a controller of Argo CD or Flux runs during a rollout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_statuses import a_chain
from tests.support.persistent_sandbox import APPLICATION, KUSTOMIZATION, PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    Repository,
    application,
    job,
    namespace,
    setting,
    three_levels,
)
from tests.support.tidegate_command import CommandResult
from tests.support.unit_conditions import condition
from tidegate.controllers import takeover
from tidegate.model.k8s.json_fields import get_mapping, get_text, get_value
from tidegate.model.k8s.kinds import JOB
from tidegate.model.k8s.objects import Json, JsonObject, Kind

SKIPS, HELD = "argocd.argoproj.io/skip-reconcile", "tidegate.dev/paused"
CONFIG_MAP, POD = Kind("", "v1", "ConfigMap"), Kind("", "v1", "Pod")
ARGO = {"app.kubernetes.io/name": "argocd-application-controller"}
FLUX = {"app": "kustomize-controller"}


def a_controller(labels: dict[str, str]) -> JsonObject:
    """A pod with the labels of a controller."""
    containers: Json = [{"name": "manager", "image": "example.org/manager:1"}]
    metadata: Json = {"name": "controller-0", "namespace": "argocd", "labels": {**labels}}
    spec: Json = {"containers": containers, "nodeName": "elsewhere"}
    kind: JsonObject = {"apiVersion": "v1", "kind": "Pod"}
    return {**kind, "metadata": metadata, "spec": spec}


def notes_of(ran: CommandResult) -> list[str]:
    """The notes of a command that have no code."""
    return [line for line in ran.stderr.splitlines() if line.startswith("note: ")]


def annotations_of(body: JsonObject) -> dict[str, Json]:
    return get_mapping(body, "metadata", "annotations")


def paused_by_tidegate(cluster: PersistentSandbox, kind: Kind) -> dict[str, bool]:
    """By unit, whether it is paused with the annotation of Tidegate."""
    result = cluster.all(kind, "argocd" if kind is APPLICATION else "flux-system")
    return {
        name: HELD in annotations_of(item)
        and (SKIPS in annotations_of(item) or get_value(item, "spec", "suspend") is True)
        for name, item in result.items()
    }


@pytest.mark.parametrize(
    ("labels", "kind", "title"),
    [
        (ARGO, APPLICATION, "Argo CD"),
        (
            {
                "app.kubernetes.io/component": "application-controller",
                "app.kubernetes.io/part-of": "argocd",
            },
            APPLICATION,
            "Argo CD",
        ),
        (FLUX, KUSTOMIZATION, "Flux's kustomize-controller"),
        (
            {"app.kubernetes.io/component": "kustomize-controller"},
            KUSTOMIZATION,
            "Flux's kustomize-controller",
        ),
    ],
)
def test_nothing_is_written_while_a_controller_manages_the_units(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    labels: dict[str, str],
    kind: Kind,
    title: str,
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, a_controller(labels))
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")

    ran = cluster.sync(made.root)

    assert ran.code == 5, ran.stdout + ran.stderr
    (error,) = [line for line in ran.stderr.splitlines() if line.startswith("error[")]
    assert error.startswith(f"error[cluster.controller-active]: {title} ")
    assert f"`{kind.name}/" in error
    assert "`--take-over`" in ran.stderr
    assert "`--hand-back`" in ran.stderr
    assert paused_by_tidegate(cluster, kind) == {}


@pytest.mark.parametrize(
    ("pod", "kind"),
    [
        (a_controller(FLUX), APPLICATION),
        (a_controller(ARGO), KUSTOMIZATION),
        (a_controller({"app": "web"}), KUSTOMIZATION),
    ],
)
def test_other_controllers_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pod: JsonObject, kind: Kind
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, pod)
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert not any(paused_by_tidegate(cluster, kind).values())


@pytest.mark.parametrize(
    ("labels", "kind"), [(ARGO, APPLICATION), (FLUX, KUSTOMIZATION)], ids=["argocd", "flux"]
)
def test_units_of_a_running_controller_are_deleted_only_with_take_over(
    wording: RecordedWording,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    labels: dict[str, str],
    kind: Kind,
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")
    cluster.sync(made.root)
    cluster.put(a_controller(labels))
    before = len(cluster.all(CONFIG_MAP, "shop"))

    refused = cluster.run("delete", made.root, "--sandbox")

    assert refused.code == 5, refused.stdout + refused.stderr
    (error,) = [line for line in refused.stderr.splitlines() if line.startswith("error[")]
    assert error.startswith("error[cluster.controller-active]: ")
    assert f"`{kind.name}/" in error
    assert "`--take-over`" in refused.stderr
    assert "`--hand-back`" not in refused.stderr
    assert before
    assert len(cluster.all(CONFIG_MAP, "shop")) == before
    assert not any(paused_by_tidegate(cluster, kind).values())
    taken = cluster.run("delete", made.root, "--sandbox", "--take-over")
    assert taken.code == 0, taken.stdout + taken.stderr
    wording(notes_of(taken))
    assert not cluster.all(CONFIG_MAP, "shop")
    assert all(paused_by_tidegate(cluster, kind).values())


def test_units_that_are_not_in_the_cluster_have_no_controller(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")
    cluster.sync(made.root)
    for name in cluster.all(KUSTOMIZATION, "flux-system"):
        cluster.delete(KUSTOMIZATION, "flux-system", name)
    cluster.put(a_controller(FLUX))

    ran = cluster.run("delete", made.root, "--sandbox", "--take-over")

    assert ran.code == 0, ran.stdout + ran.stderr
    wording(notes_of(ran))
    assert not cluster.all(CONFIG_MAP, "shop")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_controller_pod_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, a_controller(ARGO))
    cluster.patch(POD, "argocd", "controller-0", {"status": {"phase": phase}}, status=True)

    ran = cluster.sync(three_levels(tmp_path / "platform").root)

    assert ran.code == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("labels", "kind"), [(ARGO, APPLICATION), (FLUX, KUSTOMIZATION)], ids=["argocd", "flux"]
)
def test_a_unit_is_paused_from_take_over_until_hand_back(
    wording: RecordedWording,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    labels: dict[str, str],
    kind: Kind,
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, a_controller(labels))
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")

    taken = cluster.sync(made.root, "--take-over")

    assert taken.code == 0, taken.stdout + taken.stderr
    assert set(paused_by_tidegate(cluster, kind).values()) == {True}
    wording(notes_of(taken))
    again = cluster.sync(made.root, "-o", "json")
    assert again.code == 0, again.stdout + again.stderr
    assert '"rollout.finished"' in again.stdout
    assert '"object.written"' not in again.stdout
    assert set(paused_by_tidegate(cluster, kind).values()) == {True}
    back = cluster.sync(made.root, "--hand-back")
    assert back.code == 0, back.stdout + back.stderr
    wording(notes_of(back))
    result = cluster.all(kind, "argocd" if kind is APPLICATION else "flux-system").values()
    assert all(
        HELD not in annotations_of(item) and SKIPS not in annotations_of(item) for item in result
    )
    assert all(get_value(item, "spec", "suspend") is None for item in result)
    assert cluster.sync(made.root).code == 5, "it runs and is not paused"


def test_live_units_are_paused_before_anything_else_is_written(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")
    cluster.sync(made.root)
    cluster.put(a_controller(FLUX))
    made.put("web/all.yaml", setting("web", to="2"))

    ran = cluster.sync(made.root, "--take-over", "--hand-back")

    assert ran.code == 0, ran.stdout + ran.stderr
    wording(notes_of(ran))
    assert get_text(cluster.all(CONFIG_MAP, "shop")["web"], "data", "to") == "2"
    assert not any(paused_by_tidegate(cluster, KUSTOMIZATION).values())


def test_a_failed_rollout_keeps_its_units_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, a_controller(FLUX), failing=["prepare"])

    ran = cluster.sync(a_chain(tmp_path / "platform").root, "--take-over", "--hand-back")

    assert ran.code == 4, ran.stdout + ran.stderr
    assert set(paused_by_tidegate(cluster, KUSTOMIZATION).values()) == {True}
    assert "`--hand-back`" in ran.stderr


def test_an_interrupted_hand_back_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, a_controller(FLUX))
    made = a_chain(tmp_path / "platform")
    cluster.sync(made.root, "--take-over")
    change, count = takeover._set_paused, 0

    async def dying(*args: object, **more: object) -> None:
        nonlocal count
        count += 1
        if count > 2:
            raise KeyboardInterrupt
        await change(*args, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(takeover, "_set_paused", dying)
        assert cluster.sync(made.root, "--hand-back").code == 130
    assert sorted(paused_by_tidegate(cluster, KUSTOMIZATION).values()) == [False, False, True, True]

    ran = cluster.sync(made.root, "--hand-back")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert not any(paused_by_tidegate(cluster, KUSTOMIZATION).values())


def test_a_unit_suspended_by_another_client_is_not_resumed(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")
    cluster.sync(made.root)
    suspend: JsonObject = {"spec": {"suspend": True}}
    cluster.patch(KUSTOMIZATION, "flux-system", "web", suspend)

    ran = cluster.sync(made.root, "--hand-back")

    assert ran.code == 0, ran.stdout + ran.stderr
    wording(notes_of(ran))
    assert get_value(cluster.all(KUSTOMIZATION, "flux-system")["web"], "spec", "suspend") is True


def test_a_unit_with_a_running_operation_is_not_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch),
        three_levels(tmp_path / "platform"),
    )
    cluster.sync(made.root)
    cluster.put(a_controller(ARGO))
    cluster.patch(APPLICATION, "argocd", "red", {"operation": {"sync": {"revision": "HEAD"}}})

    ran = cluster.sync(made.root, "--take-over")

    assert ran.code == 5, ran.stdout + ran.stderr
    (error,) = [line for line in ran.stderr.splitlines() if line.startswith("error[")]
    assert error.startswith("error[cluster.controller-busy]: Argo CD ")
    assert "`Application/argocd/red`" in error
    assert not any(paused_by_tidegate(cluster, APPLICATION).values())


def test_take_over_without_a_controller_is_reported(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)

    ran = cluster.sync(a_chain(tmp_path / "platform").root, "--take-over")

    assert ran.code == 0, ran.stdout + ran.stderr
    wording(notes_of(ran))
    assert not any(paused_by_tidegate(cluster, KUSTOMIZATION).values())


def test_a_paused_unit_still_has_its_conditions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, a_controller(FLUX))

    cluster.sync(a_chain(tmp_path / "platform").root, "--take-over")

    units = cluster.all(KUSTOMIZATION, "flux-system").values()
    assert {(condition(unit, "Ready") or ("",))[0] for unit in units} == {"True"}


@pytest.mark.parametrize(("labels", "kind"), [(ARGO, APPLICATION), (FLUX, KUSTOMIZATION)])
def test_units_that_stay_paused_are_no_change_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: dict[str, str], kind: Kind
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, a_controller(labels))
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")
    held = cluster.sync(made.root, "--take-over")
    assert held.code == 0, held.stdout + held.stderr
    assert any(paused_by_tidegate(cluster, kind).values())

    planned = cluster.reach("plan", made.root, "--exit-code")

    assert planned.code == 0, planned.stdout


@pytest.mark.parametrize(("desired", "hooks"), [("1", []), ("2", ["pre"])])
def test_hooks_run_after_argo_cd_has_synced_only_if_an_object_changes(
    desired: str, hooks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: Json = {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/a"}
    live = setting("a", "shop")
    live["metadata"] = {"name": "a", "namespace": "shop", "annotations": notes}
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, namespace("shop"), live)
    made = Repository(tmp_path / "platform")
    made.put("apps/web.yaml", application("web", "web"))
    made.put("web/all.yaml", job("pre", hook="PreSync"), setting("a", to=desired))

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert [*cluster.all(JOB, "shop")] == hooks
