"""Helm releases of random hooks, released one after another, and the records that are left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec
from hypothesis import strategies as st

from tests.support.builders import make_object
from tests.support.killable_processes import SharedSandbox
from tests.support.parsed_manifests import parse_all_manifests
from tests.support.rollout_cases import IN_A_HURRY, no_budget
from tests.support.rollout_stages import NOTHING, Actor, ProcessOptions, Stage
from tidegate.dialect.helm import history, record_owner
from tidegate.dialect.helm.action_policy import with_action
from tidegate.dialect.helm.record import ReleaseRecord, read_record
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import Json
from tidegate.model.plans.plan import Plan
from tidegate.model.units.policy import Order
from tidegate.model.units.release_history import (
    ReleaseAction,
    ReleaseContents,
    ReleaseHook,
    ReleaseSpec,
    ReleaseTestSpec,
)
from tidegate.model.units.unit import Destination, Unit, UnitId
from tidegate.plan.build.build import build_plan
from tidegate.releases.history import HelmHistory
from tidegate.world.messages import WatchEventType

EVENTS = ("pre-install", "post-install", "pre-upgrade", "post-upgrade")
POLICIES = ("", "before-hook-creation", "hook-succeeded", "before-hook-creation,hook-succeeded")
NAME = UnitId("HelmRelease", "", "default", "web")
TERMS = ReleaseSpec("web", "default", "default", max_history=0, test=ReleaseTestSpec(runs=True))


@dataclass(frozen=True)
class HookOfRelease:
    """A Job that ends well."""

    events: frozenset[str]
    weight: int = 0
    policy: str = ""


@dataclass(frozen=True)
class ReleaseCase:
    """A chart: so many objects, and hooks."""

    objects: int
    hooks: tuple[HookOfRelease, ...]

    def texts(self, to: str) -> list[dict[str, Json]]:
        settings = (
            make_object("v1 ConfigMap", f"u-{number}", data={"image": to})
            for number in range(self.objects)
        )
        return [*settings, *(_hook(number, hook) for number, hook in enumerate(self.hooks))]

    def expected(self, actions: list[ReleaseAction]) -> Counter[str]:
        """How often each hook is made by releases of these kinds."""
        return Counter(
            f"u-hook-{number}"
            for action in actions
            for number, hook in enumerate(self.hooks)
            for event in hook.events
            if event.endswith(f"-{action}") or event == "test"
        )


release_cases = st.builds(
    ReleaseCase,
    st.integers(0, 2),
    st.lists(
        st.builds(
            HookOfRelease,
            st.frozensets(st.sampled_from((*EVENTS, "test")), min_size=1),
            st.integers(-1, 1),
            st.sampled_from(POLICIES),
        ),
        max_size=3,
    ).map(tuple),
)


class ReleaseStage:
    """Releases a chart on one cluster, as the commands do it: by what is there, each time anew."""

    def __init__(self, case: ReleaseCase) -> None:
        self.case = case
        self.stage = Stage(NOTHING)

    def release(self, to: str, *, holder: str = "one", dies_at: int = 0, lands: int = 0) -> Actor:
        plan, keeper = self._planned(to)
        part = ProcessOptions(holder=holder, dies_at=dies_at, lands=lands, keeper=keeper)
        if dies_at:
            actor = self.stage.actor(plan, part)
            self.stage.play(actor)
            return actor
        return self.stage.roll_out(plan, part)

    def _planned(self, to: str) -> tuple[Plan, HelmHistory]:
        """What an upgrade is made of is known by the revision that it is."""
        records = self.records
        entering = history.plan_revision(to, records, TERMS, NAME.tracking_id)
        action, drift = entering.action, None
        if action in {ReleaseAction.UNCHANGED, ReleaseAction.TEST}:
            last, drift = record_owner.newest_record(records), TERMS.drift
            action = (
                ReleaseAction(last.annotations[record_owner.ACTION])
                if last is not None
                else ReleaseAction.INSTALL
            )
        terms = msgspec.structs.replace(TERMS, action=action)
        policy = msgspec.structs.replace(IN_A_HURRY, order=Order.HELM, prune=True, drift=drift)
        unit = Unit(
            id=NAME, destination=Destination("", "default"), policy=with_action(policy, terms)
        )
        documents = read_documents("---\n".join(map(_yaml, self.case.texts(to))), "chart")
        all_manifests = parse_all_manifests(unit, documents, lambda _: True)
        sheet = ReleaseContents(
            key=to,
            chart={"metadata": {"name": "shop", "version": "1.0.0"}},
            config={"to": to},
            hooks=tuple(
                ReleaseHook(f"u-hook-{number}", "Job", "", "", tuple(hook.events))
                for number, hook in enumerate(self.case.hooks)
            ),
        )
        books = HelmHistory({NAME: terms}, {NAME: to}, {NAME: sheet})
        return build_plan((all_manifests,), readiness_timeout=no_budget), books

    @property
    def realm(self) -> SharedSandbox:
        return self.stage.realm

    @property
    def records(self) -> list[ReleaseRecord]:
        view = self.realm.clusters[""].reader
        bodies = (item.body for item in view.list_objects(SECRET, "default"))
        matches = [
            read_record(body) for body in bodies if get_text(body, "type") == "helm.sh/release.v1"
        ]
        return sorted(matches, key=lambda item: item.number)

    @property
    def revision_statuses(self) -> list[tuple[int, str]]:
        return [(record.number, record.status.value) for record in self.records]

    @property
    def actions(self) -> list[ReleaseAction]:
        return [ReleaseAction(record.annotations[record_owner.ACTION]) for record in self.records]

    @property
    def made(self) -> Counter[str]:
        """How often each hook was made."""
        changes = self.stage.record.changes
        return Counter(
            change.stored.ref.name
            for change in changes
            if change.change is WatchEventType.ADDED and "-hook-" in change.stored.ref.name
        )


def _yaml(body: dict[str, Json]) -> str:
    return msgspec.json.encode(body).decode() + "\n"


def _hook(number: int, item: HookOfRelease) -> dict[str, Json]:
    notes: dict[str, Json] = {
        "helm.sh/hook": ",".join(sorted(item.events)),
        "helm.sh/hook-weight": str(item.weight),
    }
    if item.policy:
        notes["helm.sh/hook-delete-policy"] = item.policy
    pod: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}
    body = make_object("batch/v1 Job", f"u-hook-{number}", spec={"template": pod})
    return {**body, "metadata": {**body["metadata"], "annotations": notes}}  # type: ignore[dict-item]
