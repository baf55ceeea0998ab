"""Two masters: a controller of Argo CD or Flux that is alive where its units are rolled out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_statuses import a_chain
from tests.support.kept_sandbox import APPLICATION, KUSTOMIZATION, KeptSandbox
from tests.support.repositories import setting, three_levels
from tests.support.unit_conditions import condition
from tidegate.controllers import takeover
from tidegate.model.k8s.json_fields import get_mapping, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind

SKIPS, HELD = "argocd.argoproj.io/skip-reconcile", "tidegate.dev/held"
CONFIG_MAP, POD = Kind("", "v1", "ConfigMap"), Kind("", "v1", "Pod")
ARGO = {"app.kubernetes.io/name": "argocd-application-controller"}
FLUX = {"app": "kustomize-controller"}


def a_controller(labels: dict[str, str]) -> JsonObject:
    """A pod of a controller, as far as anybody can see that."""
    containers: Json = [{"name": "manager", "image": "example.org/manager:1"}]
    metadata: Json = {"name": "controller-0", "namespace": "argocd", "labels": {**labels}}
    spec: Json = {"containers": containers, "nodeName": "elsewhere"}
    kind: JsonObject = {"apiVersion": "v1", "kind": "Pod"}
    return {**kind, "metadata": metadata, "spec": spec}


def notes(body: JsonObject) -> dict[str, Json]:
    return get_mapping(body, "metadata", "annotations")


def held(cluster: KeptSandbox, kind: Kind) -> dict[str, bool]:
    """By unit, whether its controller is held, and that is known to be ours."""
    result = cluster.all(kind, "argocd" if kind is APPLICATION else "flux-system")
    return {
        name: HELD in notes(item)
        and (SKIPS in notes(item) or get_value(item, "spec", "suspend") is True)
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
def test_a_live_controller_of_the_units_is_refused_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    labels: dict[str, str],
    kind: Kind,
    title: str,
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, a_controller(labels))
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")

    ran = cluster.sync(made.root)

    assert ran.code == 5, ran.stdout + ran.stderr
    assert (
        f"error[cluster.controller-active]: {title} is alive, and brings `{kind.name}/"
        in ran.stderr
    )
    assert "`--take-over` holds it there first, and `--hand-back` lets it go again" in ran.stderr
    assert held(cluster, kind) == {}


@pytest.mark.parametrize(
    ("pod", "kind"),
    [
        (a_controller(FLUX), APPLICATION),
        (a_controller(ARGO), KUSTOMIZATION),
        (a_controller({"app": "web"}), KUSTOMIZATION),
    ],
)
def test_who_is_no_master_of_these_units_is_not_minded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pod: JsonObject, kind: Kind
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, pod)
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert not any(held(cluster, kind).values())


@pytest.mark.parametrize(("labels", "kind"), [(ARGO, APPLICATION), (FLUX, KUSTOMIZATION)])
def test_what_a_live_controller_would_bring_back_is_deleted_only_when_that_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: dict[str, str], kind: Kind
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch)
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")
    cluster.sync(made.root)
    cluster.put(a_controller(labels))
    before = len(cluster.all(CONFIG_MAP, "shop"))

    refused = cluster.run("delete", made.root, "--sandbox")

    assert refused.code == 5, refused.stdout + refused.stderr
    assert f"is alive, and brings `{kind.name}/" in refused.stderr
    assert "hint: `--take-over` holds it there first; or stop it" in refused.stderr
    assert before
    assert len(cluster.all(CONFIG_MAP, "shop")) == before
    assert not any(held(cluster, kind).values())
    taken = cluster.run("delete", made.root, "--sandbox", "--take-over")
    assert taken.code == 0, taken.stdout + taken.stderr
    assert "held: " in taken.stderr
    assert not cluster.all(CONFIG_MAP, "shop")
    assert all(held(cluster, kind).values())


def test_units_that_are_gone_are_nobodys_to_bring_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = KeptSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")
    cluster.sync(made.root)
    for name in cluster.all(KUSTOMIZATION, "flux-system"):
        cluster.delete(KUSTOMIZATION, "flux-system", name)
    cluster.put(a_controller(FLUX))

    ran = cluster.run("delete", made.root, "--sandbox", "--take-over")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "no controller of these units is alive, and nobody is held" in ran.stderr
    assert not cluster.all(CONFIG_MAP, "shop")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_controller_that_has_ended_is_not_minded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, a_controller(ARGO))
    cluster.patch(POD, "argocd", "controller-0", {"status": {"phase": phase}}, status=True)

    ran = cluster.sync(three_levels(tmp_path / "platform").root)

    assert ran.code == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(("labels", "kind"), [(ARGO, APPLICATION), (FLUX, KUSTOMIZATION)])
def test_whoever_is_taken_over_is_held_from_the_beginning_until_it_is_handed_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: dict[str, str], kind: Kind
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, a_controller(labels))
    made = (three_levels if kind is APPLICATION else a_chain)(tmp_path / "platform")

    taken = cluster.sync(made.root, "--take-over")

    assert taken.code == 0, taken.stdout + taken.stderr
    assert set(held(cluster, kind).values()) == {True}
    assert "stays held for" in taken.stderr
    again = cluster.sync(made.root)
    assert again.code == 0, again.stdout + again.stderr
    assert "nothing changed" in again.stdout
    assert set(held(cluster, kind).values()) == {True}
    back = cluster.sync(made.root, "--hand-back")
    assert back.code == 0, back.stdout + back.stderr
    assert "handed back to" in back.stderr
    result = cluster.all(kind, "argocd" if kind is APPLICATION else "flux-system").values()
    assert all(HELD not in notes(item) and SKIPS not in notes(item) for item in result)
    assert all(get_value(item, "spec", "suspend") is None for item in result)
    assert cluster.sync(made.root).code == 5, "it is alive, and nobody holds it"


def test_units_that_live_are_held_before_anything_else_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = KeptSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")
    cluster.sync(made.root)
    cluster.put(a_controller(FLUX))
    made.put("web/all.yaml", setting("web", to="2"))

    ran = cluster.sync(made.root, "--take-over", "--hand-back")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "4 units are held: Flux's kustomize-controller leaves them alone" in ran.stderr
    assert "4 units are handed back to Flux's kustomize-controller" in ran.stderr
    assert get_text(cluster.all(CONFIG_MAP, "shop")["web"], "data", "to") == "2"
    assert not any(held(cluster, KUSTOMIZATION).values())


def test_a_rollout_that_fails_keeps_what_it_has_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, a_controller(FLUX), failing=["prepare"])

    ran = cluster.sync(a_chain(tmp_path / "platform").root, "--take-over", "--hand-back")

    assert ran.code == 4, ran.stdout + ran.stderr
    assert set(held(cluster, KUSTOMIZATION).values()) == {True}
    assert "`--hand-back` lets them go" in ran.stderr


def test_whoever_dies_while_handing_back_goes_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, a_controller(FLUX))
    made = a_chain(tmp_path / "platform")
    cluster.sync(made.root, "--take-over")
    change, count = takeover._set_paused, 0

    async def dying(*words: object, **more: object) -> None:
        nonlocal count
        count += 1
        if count > 2:
            raise KeyboardInterrupt
        await change(*words, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(takeover, "_set_paused", dying)
        assert cluster.sync(made.root, "--hand-back").code == 130
    assert sorted(held(cluster, KUSTOMIZATION).values()) == [False, False, True, True]

    ran = cluster.sync(made.root, "--hand-back")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert not any(held(cluster, KUSTOMIZATION).values())


def test_what_somebody_else_has_suspended_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = KeptSandbox.make(tmp_path, monkeypatch), a_chain(tmp_path / "platform")
    cluster.sync(made.root)
    suspend: JsonObject = {"spec": {"suspend": True}}
    cluster.patch(KUSTOMIZATION, "flux-system", "web", suspend)

    ran = cluster.sync(made.root, "--hand-back")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "none of these units is held" in ran.stderr
    assert get_value(cluster.all(KUSTOMIZATION, "flux-system")["web"], "spec", "suspend") is True


def test_a_controller_in_the_middle_of_something_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = KeptSandbox.make(tmp_path, monkeypatch), three_levels(tmp_path / "platform")
    cluster.sync(made.root)
    cluster.put(a_controller(ARGO))
    cluster.patch(APPLICATION, "argocd", "red", {"operation": {"sync": {"revision": "HEAD"}}})

    ran = cluster.sync(made.root, "--take-over")

    assert ran.code == 5, ran.stdout + ran.stderr
    assert (
        "error[cluster.controller-busy]: Argo CD is in the middle of `Application/argocd/red`"
        in (ran.stderr)
    )
    assert not any(held(cluster, APPLICATION).values())


def test_where_nobody_is_there_to_take_over_from_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch)

    ran = cluster.sync(a_chain(tmp_path / "platform").root, "--take-over")

    assert ran.code == 0, ran.stdout + ran.stderr
    assert "no controller of these units is alive, and nobody is held" in ran.stderr
    assert not any(held(cluster, KUSTOMIZATION).values())


def test_a_unit_that_is_held_still_says_how_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KeptSandbox.make(tmp_path, monkeypatch, a_controller(FLUX))

    cluster.sync(a_chain(tmp_path / "platform").root, "--take-over")

    units = cluster.all(KUSTOMIZATION, "flux-system").values()
    assert {(condition(unit, "Ready") or ("",))[0] for unit in units} == {"True"}
