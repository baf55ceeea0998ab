"""The cost of a link of a chain of Kustomizations, compared with the gate of a bare loop.

Each depends on the previous one and waits for its Deployment. Flux itself checks every 30 seconds.
"""

from __future__ import annotations

import asyncio
import statistics

import msgspec

from bench.engine.cluster import Bench
from bench.engine.gates import BareLoop
from tests.support.parsed_manifests import parse_all_manifests
from tests.support.rollout_audit import a_wave, read_history
from tidegate.dialect.flux.kustomization import read_kustomization
from tidegate.dialect.semantics import with_semantics
from tidegate.documents import read_documents
from tidegate.documents.dump import to_json
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.kube.credentials import make_auth_source
from tidegate.model.k8s.objects import Json
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Plan
from tidegate.model.units.semantics import TIDEGATE
from tidegate.plan.build.build import build_plan

LINKS = 100


def plan_chain(place: str) -> Plan:
    """A hundred units, each with one wave of objects, in this namespace."""
    return build_plan(
        [_link(number, place) for number in range(LINKS)], readiness_timeout=readiness_timeout
    )


def _link(number: int, place: str) -> Manifests:
    before: list[Json] = [{"name": f"link-{number - 1}"}] if number else []
    spec: Json = {
        "interval": "10m",
        "prune": False,
        "wait": True,
        "sourceRef": {"kind": "GitRepository", "name": "platform"},
        "targetNamespace": place,
        "dependsOn": before,
    }
    body: dict[str, Json] = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": f"link-{number}", "namespace": place},
        "spec": spec,
    }
    (document,) = read_documents(to_json(body), "unit.yaml")
    (unit,) = read_kustomization(document, place).units
    unit = msgspec.structs.replace(unit, policy=with_semantics(unit.policy, TIDEGATE))
    documents = [
        document
        for wave in a_wave(number, place)
        for document in read_documents(to_json(wave), "a.yaml")
    ]
    return parse_all_manifests(unit, documents, lambda _: True)


async def run(bench: Bench) -> None:
    headers = dict((await make_auth_source(bench.target).current()).headers())
    for name in ("bare-links", "links"):
        await bench.make_namespace(name)
    async with bench.session() as session:
        waves = [a_wave(number, "bare-links") for number in range(LINKS)]
        await BareLoop(session, bench.target, headers).run(waves, "bare-links")
    await bench.roll_out(plan_chain("links"))


def measure(bench: Bench) -> dict[str, float]:
    asyncio.run(run(bench))
    figures: dict[str, float] = {}
    for who in ("bare-links", "links"):
        waits = [*read_history(bench.plane.audit_log, who).gates()]
        figures[f"{who}, p50 ms"] = statistics.median(waits)
    figures["links / bare, p50"] = figures["links, p50 ms"] / figures["bare-links, p50 ms"]
    return figures
