"""A stage for Flux's cases: a Kustomization and its objects in, a reconciliation by its rules.

    @case(46)
    async def test_...(flux: FluxStage) -> None:
        await flux.reconcile(KEPT, GOES)
        run = await flux.reconcile(KEPT)                  # `prune: true` is what a test begins with

        assert run.result == "passed"

What renders, discovers or speaks of several units is tried by commands, in repositories.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec
import pytest

from tests.conformance.argocd.stage import ArgoStage
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import ACCOUNT, a_namespace, an_object
from tests.support.parsed_manifests import parse_all_manifests
from tests.support.rollout_runs import Run
from tests.support.rollout_stage import RunningRollout
from tests.support.write_records import Record, StoreRecord
from tidegate.dialect.flux.kustomization import read_kustomization
from tidegate.dialect.semantics import with_semantics
from tidegate.documents import read_documents
from tidegate.documents.dump import to_json
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Plan
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.policy import Policy
from tidegate.model.units.semantics import FLUX, TIDEGATE, Semantics
from tidegate.model.units.unit import Unit
from tidegate.plan.build.build import build_plan
from tidegate.sandbox.world import Sandbox
from tidegate.world.protocol import World

_numbers = itertools.count(1)
SPEC: JsonObject = {
    "interval": "10m",
    "retryInterval": "1m",
    "timeout": "2m",
    "prune": True,
    "sourceRef": {"kind": "GitRepository", "name": "platform"},
}


LONG = Ms(60 * MINUTE)
"""Time costs nothing in a sandbox, and on a real server no test comes near it."""


class FluxStage(ArgoStage):
    """One namespace, and a Kustomization in it that is reconciled by Flux's rules."""

    def unit(self, spec: JsonObject, rules: Semantics = FLUX, name: str = "") -> Unit:
        """A Kustomization of these fields, besides those that every one here has."""
        body: JsonObject = {
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            "kind": "Kustomization",
            "metadata": {"name": name or self.namespace, "namespace": self.namespace},
            "spec": {**SPEC, "targetNamespace": self.namespace, **spec},
        }
        (document,) = read_documents(to_json(body), "unit.yaml")
        read_ = read_kustomization(document, self.namespace)
        assert not [finding for finding in read_.findings if finding.severity == "error"], (
            read_.findings
        )
        (unit,) = read_.units
        return msgspec.structs.replace(unit, policy=with_semantics(unit.policy, rules))

    async def wants(
        self,
        *bodies: JsonObject,
        rules: Semantics = FLUX,
        policy: Policy | None = None,
        **spec: Json,
    ) -> Plan:
        """The plan of the unit with these objects."""
        unit = self.unit(spec, rules)
        if policy is not None:
            unit = msgspec.structs.replace(unit, policy=policy)
        documents = [
            document
            for body in bodies
            for document in read_documents(to_json(self.here(body)), "a.yaml")
        ]
        wide = await self._cluster_wide()
        all_manifests = parse_all_manifests(
            unit, documents, lambda kind: (kind.group, kind.name) not in wide
        )
        return build_plan([all_manifests], readiness_timeout=readiness_timeout)

    async def chain(self, *layers: tuple[JsonObject, ...]) -> Plan:
        """Units with `wait`, each after the previous one, with Tidegate semantics."""
        wide = await self._cluster_wide()
        result: list[Manifests] = []
        for number, bodies in enumerate(layers):
            before: Json = [{"name": f"layer-{number - 1}"}] if number else []
            spec: JsonObject = {"wait": True, "dependsOn": before}
            unit = self.unit(spec, TIDEGATE, f"layer-{number}")
            texts = [
                document
                for body in bodies
                for document in read_documents(to_json(self.here(body)), "a.yaml")
            ]
            scope = lambda kind: (kind.group, kind.name) not in wide  # noqa: E731
            result.append(parse_all_manifests(unit, texts, scope))
        return build_plan(result, readiness_timeout=readiness_timeout)

    async def begin_reconcile(
        self, *bodies: JsonObject, rules: Semantics = FLUX, **spec: Json
    ) -> RunningRollout:
        rolling = self.start_plan(await self.wants(*bodies, rules=rules, policy=None, **spec))
        rolling.patience = LONG
        return rolling

    async def reconcile(self, *bodies: JsonObject, rules: Semantics = FLUX, **spec: Json) -> Run:
        return await (await self.begin_reconcile(*bodies, rules=rules, **spec)).ends()


async def open_flux(
    world: World, record_of: Callable[[ClusterClient], Record] | None = None
) -> FluxStage:
    """A namespace, and a record that begins now; a sandbox has one."""
    stage = FluxStage(
        world, f"flux-{next(_numbers)}", record_of or (lambda _: _store_record(world))
    )
    require_live(await stage.client.create(a_namespace(stage.namespace)))
    require_live(await stage.client.apply(an_object(ACCOUNT, "default")))
    await stage.record.mark()
    return stage


def _store_record(world: World) -> Record:
    assert isinstance(world, Sandbox)
    return StoreRecord(world)


def case(*numbers: int) -> pytest.MarkDecorator:
    """Mark the cases that a test covers; docs/contributing/flux-cases.md lists them."""
    return pytest.mark.case(*numbers)


def lines_with(text: str, *parts: str) -> list[str]:
    """The lines of an output that have all of these parts."""
    return [line for line in text.splitlines() if all(part in line for part in parts)]
