"""Verbs of Flux and Argo CD where their controllers are alive: these are asked, and waited for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.faces.test_masters import ARGO, FLUX, a_controller
from tests.faces.test_statuses import a_chain
from tests.fakes.kept_sandbox import APPLICATION, KUSTOMIZATION
from tests.fakes.repositories import Body, git_repository, kustomization, three_levels
from tests.fakes.served_cluster import flux_answer, served_cluster
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import mapping, part, text

CONFIG_MAP = Kind("", "v1", "ConfigMap")
GIT = Kind("source.toolkit.fluxcd.io", "v1", "GitRepository")
REQUESTED = "reconcile.fluxcd.io/requestedAt"


def source_controller() -> Body:
    pod = a_controller({"app": "source-controller"})
    return {**pod, "metadata": {**mapping(pod, "metadata"), "name": "source-controller-0"}}


async def test_a_live_flux_is_asked_and_waited_for_with_its_own_sentences(tmp_path: Path) -> None:
    made = a_chain(tmp_path / "platform")
    given = (a_controller(FLUX), source_controller(), kustomization("web", "./web"), git_repository())
    async with (
        served_cluster(tmp_path, *given) as cluster,
        cluster.answering(KUSTOMIZATION, flux_answer),
        cluster.answering(GIT, flux_answer),
    ):
        ran = await cluster.run("reconcile", "ks", "web", "--with-source", "-C", made.root)

        assert ran.code == 0, ran.stdout + ran.stderr
        assert ran.stdout.startswith("target: context ")
        lines = [line for line in ran.stderr.splitlines() if line[:1] in "►✔◎✗"]
        assert [line for line in lines if line != "◎ it has not taken up the request"] == [
            "► annotating GitRepository platform in flux-system namespace",
            "✔ GitRepository annotated",
            "◎ waiting for GitRepository reconciliation",
            "✔ fetched revision main@sha1:abc",
            "► annotating Kustomization web in flux-system namespace",
            "✔ Kustomization annotated",
            "◎ waiting for Kustomization reconciliation",
            "✔ applied revision main@sha1:abc",
        ]
        web = await cluster.body(KUSTOMIZATION, "flux-system", "web")
        assert text(web, "metadata", "annotations", REQUESTED)
        assert await cluster.names(CONFIG_MAP, "default") == {"kube-root-ca.crt"}, "nothing else"


async def test_what_keeps_a_unit_from_becoming_ready_is_told_while_it_is_waited_for(
    tmp_path: Path,
) -> None:
    made = a_chain(tmp_path / "platform")
    given = (a_controller(FLUX), kustomization("web", "./web"))
    async with (
        served_cluster(tmp_path, *given) as cluster,
        cluster.answering(KUSTOMIZATION, partial(flux_answer, ready=False)),
    ):
        ran = await cluster.run("reconcile", "ks", "web", "--timeout", "2s", "-C", made.root)

    assert ran.code == 8, ran.stdout + ran.stderr
    assert "◎ dependency 'flux-system/data' is not ready" in ran.stderr
    assert "✗ context deadline exceeded" in ran.stderr
    assert "error[cluster.late]: `Kustomization/flux-system/web` did not come up" in ran.stderr
