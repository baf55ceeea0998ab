"""Asking a webhook: which objects are tried, and what the answers mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import pytest

from tests.support.builders import make_config_map, make_manifest, make_object, make_unit_id
from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.preflight.admission import has_matching_rule
from tidegate.engine.cluster.preflight.probes import PROBE_MANAGER, probe_webhooks
from tidegate.engine.cluster.procedures import Pause, Procedure
from tidegate.engine.messages import Failure
from tidegate.model.k8s.objects import (
    ClusterRef,
    Json,
    JsonObject,
    Kind,
    LiveObject,
    Ref,
    ServedKind,
    parse_live_object,
)
from tidegate.model.plans.plan import PlanItem, PlannedUnit
from tidegate.world.messages import (
    AlreadyExists,
    Delivery,
    Forbidden,
    Invalid,
    ListPage,
    LossReason,
    NoResponse,
    NotFound,
    Outcome,
    ServerError,
    Success,
)
from tidegate.world.requests import Get, List, Request, Verb, Write

VERBS = ("list", "patch", "create")
MAPS = ServedKind(Kind("", "v1", "ConfigMap"), "configmaps", True, VERBS, ())
SPACES = ServedKind(Kind("", "v1", "Namespace"), "namespaces", False, VERBS, ())
UNANSWERED = ServerError(500, "InternalError", 'failed calling webhook "a.example.org": refused')
DENIED = Forbidden('admission webhook "a.example.org" denied the request: no')
SERVICE: JsonObject = {"service": {"namespace": "shop", "name": "hook"}, "caBundle": "Y2E="}
READY: list[Json] = [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}]


def a_hook(**parts: Json) -> JsonObject:
    rule: JsonObject = {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    hook: JsonObject = {
        "name": "a.example.org",
        "sideEffects": "None",
        "clientConfig": SERVICE,
        "rules": [rule],
    }
    return {**hook, **parts}


def a_rule(*resources: str, **parts: Json) -> JsonObject:
    every: list[Json] = ["*"]
    rule: JsonObject = {"operations": every, "apiGroups": every, "apiVersions": every}
    return a_hook(rules=[{**rule, "resources": [*resources], **parts}])


def live_of(body: JsonObject) -> LiveObject:
    return parse_live_object(msgspec.json.encode(body))


@dataclass
class Server:
    """Returns the given answers, and records the requests."""

    says: Callable[[Write], Outcome] = lambda _: Success()
    lists: dict[str, tuple[LiveObject, ...]] = field(default_factory=dict)
    namespaces: dict[str, JsonObject] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)

    def answer(self, request: Request) -> Outcome:
        match request:
            case Write():
                self.writes.append(request)
                return self.says(request)
            case List():
                return ListPage(self.lists.get(request.selection.kind.name, ()), "7")
            case Get(ref=ref) if ref.name in self.namespaces:
                labels = self.namespaces[ref.name]
                space = make_object("v1 Namespace", ref.name, namespace="")
                return Success(live_of({**space, "metadata": {"name": ref.name, "labels": labels}}))
            case _:
                return NotFound("not found")

    def probe(
        self, hook: JsonObject, *planned: JsonObject, living: tuple[JsonObject, ...] = ()
    ) -> Failure | None:
        live_cache = LiveCache()
        live_cache.served_kinds[""] = {served.kind: served for served in (MAPS, SPACES)}
        live_objects = [live_of(body) for body in living]
        live_cache.objects = {ClusterRef("", live.ref): live for live in live_objects}
        manifests = [make_manifest(body) for body in planned]
        items = [
            (PlanItem(ref=manifest.ref, body=manifest.body), PlannedUnit(id=make_unit_id("shop")))
            for manifest in manifests
        ]
        return self._run(probe_webhooks("", {"webhooks": [hook]}, live_cache, items))

    def _run(self, procedure: Procedure[Failure | None]) -> Failure | None:
        try:
            call = next(procedure)
            while True:
                assert not isinstance(call, Pause)
                call = procedure.send(tuple(self.answer(ask.request) for ask in call))
        except StopIteration as end:
            came: Failure | None = end.value
            return came

    @property
    def tried(self) -> list[str]:
        return list(dict.fromkeys(write.ref.name for write in self.writes))


def with_ready_endpoints() -> dict[str, tuple[LiveObject, ...]]:
    slice_ = make_object("discovery.k8s.io/v1 EndpointSlice", "hook-1", endpoints=READY)
    return {"EndpointSlice": (live_of(slice_),)}


def test_an_object_of_the_plan_is_tried_in_a_dry_run() -> None:
    server = Server()

    trouble = server.probe(a_hook(), make_config_map("one"))

    assert trouble is None
    assert server.tried == ["one"]
    assert all(write.dry_run and write.verb is Verb.APPLY for write in server.writes)


def test_a_webhook_that_cannot_be_called_is_not_ready() -> None:
    trouble = Server(says=lambda _: UNANSWERED).probe(a_hook(), make_config_map())

    assert trouble is not None
    assert trouble.reason == "WebhookUnreachable"
    assert not trouble.final


def test_two_responses_are_needed() -> None:
    answers: Iterator[Outcome] = iter([Success(), UNANSWERED])

    trouble = Server(says=lambda _: next(answers)).probe(a_hook(), make_config_map())

    assert trouble is not None


def test_a_denial_is_an_answer() -> None:
    assert Server(says=lambda _: DENIED).probe(a_hook(), make_config_map()) is None


def test_an_unreachable_server_does_not_open_the_gate() -> None:
    lost = NoResponse(Delivery.MAYBE_SENT, LossReason.TIMEOUT, "no answer")

    trouble = Server(says=lambda _: lost).probe(a_hook(), make_config_map())

    assert trouble is not None
    assert trouble.reason == "NoDryRun"


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(NotFound('namespaces "default" not found'), id="namespace"),
        pytest.param(Invalid("spec.color: Required value"), id="invalid"),
        pytest.param(Forbidden("configmaps is forbidden: User cannot patch"), id="rights"),
        pytest.param(
            Invalid('admission webhook "b.example.org" does not support dry run'), id="dry-run"
        ),
    ],
)
def test_a_rejection_before_the_webhook_proves_nothing(refusal: Outcome) -> None:
    server = Server(says=lambda write: refusal if write.ref.name == "one" else DENIED)

    trouble = server.probe(a_hook(), make_config_map("one"), make_config_map("two"))

    assert trouble is None
    assert server.tried == ["one", "two"]


def test_a_webhook_for_creations_is_probed_with_a_creation() -> None:
    server = Server(says=lambda _: AlreadyExists("it is there"))
    hook = a_rule("configmaps", operations=["CREATE"])

    trouble = server.probe(hook, make_config_map("one"), living=(make_config_map("one"),))

    assert trouble is None
    assert {write.verb for write in server.writes} == {Verb.CREATE}
    assert all(write.dry_run for write in server.writes)


def test_only_objects_that_the_selector_matches_are_tried() -> None:
    server = Server()
    labelled: JsonObject = {
        **make_config_map("two"),
        "metadata": {"name": "two", "labels": {"app": "web"}},
    }
    hook = a_hook(objectSelector={"matchLabels": {"app": "web"}})

    server.probe(hook, make_config_map("one"), labelled)

    assert server.tried == ["two"]


def test_only_objects_of_a_selected_namespace_are_tried() -> None:
    server = Server(namespaces={"default": {"team": "b"}, "shop": {"team": "a"}})
    here: JsonObject = {**make_config_map(), "metadata": {"name": "two", "namespace": "shop"}}
    nowhere: JsonObject = {**make_config_map(), "metadata": {"name": "three", "namespace": "gone"}}
    hook = a_hook(namespaceSelector={"matchLabels": {"team": "a"}})

    server.probe(hook, make_config_map("one"), nowhere, here)

    assert server.tried == ["two"]


def test_a_live_object_is_tried_unchanged_if_the_plan_has_none() -> None:
    server = Server(lists={"ConfigMap": (live_of(make_config_map("old", color="red")),)})

    trouble = server.probe(a_hook())

    assert trouble is None
    write = server.writes[0]
    assert (write.ref.name, write.verb, write.manager) == ("old", Verb.APPLY, PROBE_MANAGER)
    assert write.dry_run
    assert b"red" not in write.body


def test_without_a_matching_object_the_service_needs_ready_endpoints() -> None:
    trouble = Server().probe(a_hook())

    assert trouble is not None
    assert trouble.reason == "NoEndpoints"
    assert Server(lists=with_ready_endpoints()).probe(a_hook()) is None


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"sideEffects": "Unknown"}, id="side-effects"),
        pytest.param(
            {"matchConditions": [{"name": "a", "expression": "true"}]}, id="match-conditions"
        ),
    ],
)
def test_a_webhook_that_a_dry_run_may_not_reach_is_not_tried(parts: dict[str, Json]) -> None:
    server = Server()

    trouble = server.probe(a_hook(**parts), make_config_map())

    assert trouble is not None
    assert trouble.reason == "NoEndpoints"
    assert not server.writes


def test_a_service_needs_a_ca_bundle() -> None:
    client: JsonObject = {"service": {"namespace": "shop", "name": "hook"}}

    trouble = Server(lists=with_ready_endpoints()).probe(a_hook(clientConfig=client))

    assert trouble is not None
    assert trouble.reason == "NoCABundle"


def test_nothing_more_can_be_known_of_an_address() -> None:
    client: JsonObject = {"url": "https://hook.example.org/"}

    assert Server().probe(a_hook(clientConfig=client)) is None


def test_a_webhook_that_fails_open_is_not_probed() -> None:
    server = Server(says=lambda _: UNANSWERED)

    trouble = server.probe(a_hook(failurePolicy="Ignore"), make_config_map())

    assert trouble is None
    assert not server.writes


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        (a_rule("configmaps"), True),
        (a_rule("*"), True),
        (a_rule("*/*"), True),
        (a_rule("configmaps/*"), True),
        (a_rule("configmaps/status"), False),
        (a_rule("pods"), False),
        (a_rule("*", scope="Namespaced"), True),
        (a_rule("*", scope="Cluster"), False),
        (a_rule("*", apiGroups=["apps"]), False),
        (a_rule("*", apiVersions=["v2"]), False),
        (a_rule("*", operations=["DELETE"]), False),
    ],
)
def test_rules_define_the_requests_of_a_webhook(hook: JsonObject, *, expected: bool) -> None:
    assert has_matching_rule(hook, MAPS, "CREATE") is expected


def test_webhooks_are_never_called_for_webhooks() -> None:
    kind = Kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
    served = ServedKind(kind, "validatingwebhookconfigurations", False, VERBS, ())

    assert not has_matching_rule(a_rule("*"), served, "CREATE")


def test_a_namespace_is_in_itself() -> None:
    server = Server(namespaces={"shop": {"team": "a"}, "default": {"team": "b"}})
    hook = a_rule("namespaces", scope="Cluster")
    hook["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    spaces = [make_object("v1 Namespace", name, namespace="") for name in ("default", "shop")]

    server.probe(hook, *spaces)

    assert {write.ref for write in server.writes} == {Ref(SPACES.kind, "", "shop")}
