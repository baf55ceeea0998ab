"""Knowledge about operators, as rows: kinds, dependencies, statuses and products.

Several packages read the rows: the sandbox simulates them, `health` uses them to evaluate
readiness, the graph uses them to find dependencies and producers. `${…}` in a string is filled from
the object.
"""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.k8s.verdict import Health
from tidegate.model.times import Duration, Ms

WILDCARD = "*"
"""The group and kind of the row for kinds without a row of their own."""
CONDITIONS_PATH = "status.conditions"
OBJECT_NAMESPACE = "${namespace}"
"""The namespace of the object that a row is evaluated for."""


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A check of an object: the value at `path` is one of `values`, or exists."""

    path: str = ""
    condition: str = ""
    """A status condition instead of a path. Without `values`, it must be `True`."""
    values: tuple[str | int | bool, ...] = ()
    absent: bool = False
    equals: str = ""
    """Another path with the same value."""
    at_least: int | str = ""
    """A minimum amount."""
    matches: str = ""
    """A regular expression."""
    negated: bool = msgspec.field(default=False, name="not")

    @property
    def target_path(self) -> str:
        return f"status.conditions[type={self.condition}].status" if self.condition else self.path

    @property
    def expected_values(self) -> tuple[str | int | bool, ...]:
        return ("True",) if self.condition and not self.values else self.values


class HealthCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A health state, and when an object is in it.

    With `first` it is a table: of the items at `among`, the first one that matches a nested case
    decides. Nested cases see it as `item`.
    """

    health: Health | None = None
    when: tuple[Check, ...] = ()
    first: tuple[HealthCase, ...] = ()
    among: str = CONDITIONS_PATH
    by: str = ""
    """The field by which the items are sorted."""
    reason: str = ""
    message: str = ""
    message_from: str = ""
    final: bool = False
    starts: bool = False
    """Whether an object that is still starting can be in this state."""


class WorkloadSelector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A selector for the workloads of an operator. One match is enough."""

    labels: tuple[dict[str, str], ...] = ()
    """Sets of labels. All labels of one set must match."""
    images: tuple[str, ...] = ()
    """Parts of image names."""
    names: tuple[str, ...] = ()
    """Patterns of names, with `*`."""
    outside: bool = False
    """Whether the operator runs outside the cluster, and so needs no workload."""


class RequiredState(StrEnum):
    """The state that an object requires of another one."""

    EXISTS = "exists"
    READY = "ready"
    SERVING = "serving"
    """A Service with a ready endpoint."""


class Need(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object that must exist or be ready before the operator can do its work."""

    kind: str
    name: str
    group: str = ""
    namespace: str = OBJECT_NAMESPACE
    each: str = ""
    """The path of a list. There is one dependency per item."""
    when: tuple[Check, ...] = ()
    until: RequiredState = RequiredState.EXISTS
    lasting: bool = False
    """Whether a ready object becomes unready when the dependency is no longer met."""
    alias: str = ""
    """The name of the found object in the templates of the row."""
    unmet: dict[str, object] = {}
    """The status that the operator writes while it waits."""


class Product(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object that the operator creates."""

    makes: dict[str, object] = msgspec.field(name="object")
    each: str = ""
    when: tuple[Check, ...] = ()
    owned: bool = True
    """Whether it is deleted with the object that it was created for."""
    namespaced: bool = True


class Port(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    port: int


class ServiceProduct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Service that is created at once, and has endpoints when the object is ready."""

    name: str
    ports: tuple[Port, ...]
    selector: dict[str, str] = {}
    when: tuple[Check, ...] = ()
    headless: bool = False


class StageDuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The duration of a stage for some objects; `*` in a pattern matches any text."""

    after: Duration
    group: str = WILDCARD
    kind: str = WILDCARD
    namespace: str = WILDCARD
    name: str = WILDCARD

    def matches(self, ref: Ref) -> bool:
        pairs = (
            (ref.name, self.name),
            (ref.namespace, self.namespace),
            (ref.kind.name, self.kind),
            (ref.kind.group, self.group),
        )
        return all(pattern == WILDCARD or fnmatchcase(value, pattern) for value, pattern in pairs)


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stage on the way to ready: a delay after the previous stage, products, and a status."""

    name: str
    when: tuple[Check, ...] = ()
    """Checks that must hold for the object before the stage is reached."""
    after: Duration = Ms(0)
    paces: tuple[StageDuration, ...] = ()
    """Durations for some objects. The last match replaces `after`."""
    writes: dict[str, object] = {}
    produces: tuple[Product, ...] = ()

    def duration_for(self, ref: Ref) -> Ms:
        return next(
            (duration.after for duration in reversed(self.paces) if duration.matches(ref)),
            self.after,
        )


class ReadinessBlocker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pods that run but are not ready until a Job has succeeded."""

    name: str
    source: str
    pods: WorkloadSelector
    reason: str
    until_jobs: tuple[str, ...]
    """Names of Jobs in their namespace, one of which must succeed.

    Without such a Job, pods stay unready.
    """
    unless: tuple[str, ...] = ()
    """Strings in arguments, variables or mounted ConfigMaps that make the pods ready at once."""


class VerificationSource(StrEnum):
    """The source that a row was verified with."""

    SERVER = "server"
    """A real cluster with the operator."""
    CODE = "code"
    """The code of the operator, or its CRDs."""
    DOCUMENTATION = "documentation"
    ASSUMED = "assumed"
    """Not verified: from memory, or the behavior of most operators."""


KSTATUS_CONDITIONS = frozenset({"Ready", "Reconciling", "Stalled"})
"""The conditions that kstatus reads of kinds without a rule."""


class KindRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Knowledge about kinds of one group that one operator serves in the same way."""

    group: str
    kinds: tuple[str, ...]
    versions: tuple[str, ...]
    source: str
    """The origin of the facts."""
    stages: tuple[Stage, ...]
    checked: VerificationSource = VerificationSource.ASSUMED
    """The source that the facts were verified with."""
    served_by: WorkloadSelector = WorkloadSelector()
    needs: tuple[Need, ...] = ()
    services: tuple[ServiceProduct, ...] = ()
    cases: tuple[HealthCase, ...] = ()
    """States other than ready and progressing. They are evaluated first."""
    ready_when: tuple[Check, ...] = ()
    observed: str = ""
    """The path of the observed generation, if the operator writes one."""
    foreign: bool = False
    """Whether only the status is simulated, because the operator does more than create objects."""
    operator: str = ""
    """The name of the operator, as used in scenarios."""
    cluster_wide: tuple[str, ...] = ()
    """The cluster-scoped kinds of the row."""
    statusless: tuple[str, ...] = ()
    """The kinds without a status subresource."""
    plurals: dict[str, str] = {}
    """The plurals of kinds whose plural is irregular."""

    @property
    def is_ready_in_kstatus(self) -> bool:
        """Whether kstatus sees when an object is ready. If not, it is Current at once.

        Like `checkGenericProperties` and `checkReadyCondition` in `pkg/kstatus/status` of
        fluxcd/cli-utils 1.2.3, which read no other conditions and no nested ones.
        """
        return any(check.condition in KSTATUS_CONDITIONS for check in self.ready_when)


class Effect(StrEnum):
    """The effect of a missing referenced object."""

    REJECTED = "refused"
    """The API server rejects it, or its pods."""
    BLOCKED = "held"
    """It is written, but unhealthy, and recovers when the referenced object appears."""
    FAILS = "fails"
    """It is a task that fails permanently when its attempts are used up."""
    NONE = "nothing"
    """It is healthy without the referenced object."""


class ReferenceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """References in fields of some kinds, and the effect of a missing target."""

    at: tuple[str, ...]
    """Paths of the references. `[*]` matches all items, `*` all keys, `**` any depth.

    The value at the path is `item` in the other strings. The last key of a path with `**` is a
    pattern.
    """
    kind: str
    name: str = "${item.name}"
    group: str = ""
    namespace: str = OBJECT_NAMESPACE
    of_group: str = ""
    of_kinds: tuple[str, ...] = ()
    pods: bool = False
    """Whether the paths are relative to a pod spec.

    Then the row applies to all kinds with pods.
    """
    when: tuple[Check, ...] = ()
    keys: tuple[str, ...] = ()
    """Paths in the item of the referenced keys, or of the ports of a Service."""
    until: RequiredState = RequiredState.EXISTS
    effect: Effect = Effect.BLOCKED
    source: str


class PodsRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The location of the pod spec in objects of some kinds."""

    group: str = ""
    kinds: tuple[str, ...]
    at: str
    labels: str = ""
    """The path of the labels of the pods."""
    is_task: bool = False
    """Whether the pods run to completion."""
    later: bool = False
    """Whether no pods exist when the object is applied."""
    source: str


class ProducerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Products of kinds that have no operator row."""

    group: str = ""
    kinds: tuple[str, ...]
    produces: tuple[Product, ...]
    images: tuple[str, ...] = ()
    """If set, only objects that run an image with one of these parts in its name."""
    source: str


class WorkloadKind(StrEnum):
    """The kind of an operator's workload."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One workload of an operator, as it is usually installed."""

    name: str
    image: str
    kind: WorkloadKind = WorkloadKind.DEPLOYMENT
    labels: dict[str, str] = {}


class Operator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator, as it is usually installed. Its kinds are the rows that name it."""

    name: str
    namespace: str
    source: str
    workloads: tuple[Workload, ...]
    services: tuple[ServiceProduct, ...] = ()


class Knowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of row files. Of two entries for the same kind, the later one wins."""

    operators: tuple[Operator, ...] = ()
    rows: tuple[KindRow, ...] = ()
    holds: tuple[ReadinessBlocker, ...] = ()
    references: tuple[ReferenceRow, ...] = ()
    pods: tuple[PodsRow, ...] = ()
    producers: tuple[ProducerRow, ...] = ()

    def merged_with(self, other: Knowledge) -> Knowledge:
        return Knowledge(
            operators=(*self.operators, *other.operators),
            rows=(*self.rows, *other.rows),
            holds=(*self.holds, *other.holds),
            references=(*self.references, *other.references),
            pods=(*self.pods, *other.pods),
            producers=(*self.producers, *other.producers),
        )
