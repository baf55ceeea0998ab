"""What is known of an operator, as rows: which kinds it serves, what they need, write and produce.

A row is data that several parts read: the sandbox plays it, `health` asks when a kind is ready, the
graph asks who needs and who produces what. Texts in `${…}` are filled from the object.
"""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from tidegate.model.moment import Ms, Span
from tidegate.model.objects import Ref
from tidegate.model.verdict import Health

EVERY = "*"
"""The group and kind of the row for kinds that have none of their own."""

CONDITIONS = "status.conditions"

OWN = "${namespace}"
"""The namespace of the object that a row is read for."""


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim about an object: what stands at `path` is one of `values`, or is there at all.

    `condition` is short for a condition of the status, which is `True` unless `values` say else.
    `equals` is another path, `at_least` an amount, `matches` a pattern.
    """

    path: str = ""
    condition: str = ""
    values: tuple[str | int | bool, ...] = ()
    absent: bool = False
    equals: str = ""
    at_least: int | str = ""
    matches: str = ""
    negated: bool = msgspec.field(default=False, name="not")

    @property
    def place(self) -> str:
        return f"status.conditions[type={self.condition}].status" if self.condition else self.path

    @property
    def wanted(self) -> tuple[str | int | bool, ...]:
        return ("True",) if self.condition and not self.values else self.values


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state, and when an object is in it.

    With `first` it is a table: `among` the items of a list, sorted `by` a field of theirs if one is
    named, the first item decides that fits one of these cases. They see it as `item`. `starts`: an
    object that only starts is in it, too.
    """

    health: Health | None = None
    when: tuple[Check, ...] = ()
    first: tuple[Case, ...] = ()
    among: str = CONDITIONS
    by: str = ""
    reason: str = ""
    says: str = ""
    tells: str = ""
    final: bool = False
    starts: bool = False


class ServedBy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to know the operator among workloads: any of these is enough.

    `labels`: all of one set. `images`: a part of an image's name. `names`: a pattern with `*`.
    An operator `outside` of the cluster needs no workload: it is always there.
    """

    labels: tuple[dict[str, str], ...] = ()
    images: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    outside: bool = False


class Until(StrEnum):
    """What is asked of an object that another one needs."""

    EXISTS = "exists"
    READY = "ready"
    SERVING = "serving"
    """A Service with an endpoint that serves."""


class Need(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object that must be there, or be ready, before the operator can do its work.

    With `each`, one for every item of a list. `unmet` is the status that the operator writes while
    it waits. A `lasting` need takes a ready object back when it is no longer met. Templates of the
    row can speak of what was found by its `alias`.
    """

    kind: str
    name: str
    group: str = ""
    namespace: str = OWN
    each: str = ""
    when: tuple[Check, ...] = ()
    until: Until = Until.EXISTS
    lasting: bool = False
    alias: str = ""
    unmet: dict[str, object] = {}


class Product(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object that the operator makes. One that is not `owned` stays when its maker goes."""

    makes: dict[str, object] = msgspec.field(name="object")
    each: str = ""
    when: tuple[Check, ...] = ()
    owned: bool = True
    namespaced: bool = True


class Port(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    port: int


class ServiceProduct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Service that is made at once and answers when the object is ready."""

    name: str
    ports: tuple[Port, ...]
    selector: dict[str, str] = {}
    when: tuple[Check, ...] = ()
    headless: bool = False


class Pace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Objects for which a stage takes longer or shorter; `*` in a pattern stands for any text."""

    after: Span
    group: str = EVERY
    kind: str = EVERY
    namespace: str = EVERY
    name: str = EVERY

    def fits(self, ref: Ref) -> bool:
        pairs = (
            (ref.name, self.name),
            (ref.namespace, self.namespace),
            (ref.kind.name, self.kind),
            (ref.kind.group, self.group),
        )
        return all(pattern == EVERY or fnmatchcase(said, pattern) for said, pattern in pairs)


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step on the way to ready: `after` the one before, these objects, then this status.

    It is not reached before the checks of `when` hold of the object as it is. The last of its
    `paces` that fits an object decides instead of `after`.
    """

    name: str
    when: tuple[Check, ...] = ()
    after: Span = Ms(0)
    paces: tuple[Pace, ...] = ()
    writes: dict[str, object] = {}
    produces: tuple[Product, ...] = ()

    def span_for(self, ref: Ref) -> Ms:
        return next((pace.after for pace in reversed(self.paces) if pace.fits(ref)), self.after)


class Hold(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pods that run and are not ready until somebody has done something to them.

    They are held `until_jobs`: until a Job of their namespace with such a name has succeeded; if
    there never is one, for good. They are not held at all if one of the texts in `unless` stands in
    their arguments, in their variables or in a ConfigMap that they mount.
    """

    name: str
    source: str
    pods: ServedBy
    reason: str
    until_jobs: tuple[str, ...]
    unless: tuple[str, ...] = ()


class CheckedAgainst(StrEnum):
    """What somebody has held a row against."""

    SERVER = "server"
    """A real cluster with the operator in it."""
    CODE = "code"
    """The operator's own code, or its CRDs."""
    DOCUMENTATION = "documentation"
    ASSUMED = "assumed"
    """Nothing yet: it is from memory, or what most operators do."""


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of some kinds of one group that one operator serves alike.

    `source` says where its facts stand, and `checked` what they were held against.

    `cases` tell what an object is that is neither ready nor on its way; they are asked first.
    `observed` is the path at which the operator tells the generation it has seen, if it does.
    Of a `foreign` row only the status is played: its operator does more than make objects.
    """

    group: str
    kinds: tuple[str, ...]
    versions: tuple[str, ...]
    source: str
    stages: tuple[Stage, ...]
    checked: CheckedAgainst = CheckedAgainst.ASSUMED
    served_by: ServedBy = ServedBy()
    needs: tuple[Need, ...] = ()
    services: tuple[ServiceProduct, ...] = ()
    cases: tuple[Case, ...] = ()
    ready_when: tuple[Check, ...] = ()
    observed: str = ""
    foreign: bool = False
    operator: str = ""
    """The name of its operator, under which a scenario can have it in a cluster."""
    cluster_wide: tuple[str, ...] = ()
    """Those of its kinds that are in no namespace."""
    statusless: tuple[str, ...] = ()
    """Those whose status is a part of the object like any other."""
    plurals: dict[str, str] = {}
    """The plurals of kinds whose plural is not the English one."""


class Effect(StrEnum):
    """What becomes of an object while what it names is not there."""

    REFUSED = "refused"
    """It cannot be written, or its pods cannot: the API server says no."""
    HELD = "held"
    """It is written and not well; it recovers by itself when the other one comes."""
    FAILS = "fails"
    """It is a task that tries, and fails for good when its attempts are used up."""
    NOTHING = "nothing"
    """It is well without."""


class ReferenceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What objects of some kinds name in their fields, and what becomes of them without it.

    `at`: where they do; `[*]` stands for every item of a list, `*` for every key of a mapping and
    `**` for any depth. What stands there is `item` in the other texts. With `pods`, the paths are
    those of a pod's spec, and the row is for all kinds that have pods. The last key of a path that
    goes any depth is a pattern. `keys`: paths in the item that name keys of what is meant.
    """

    at: tuple[str, ...]
    kind: str
    name: str = "${item.name}"
    group: str = ""
    namespace: str = OWN
    of_group: str = ""
    of_kinds: tuple[str, ...] = ()
    pods: bool = False
    when: tuple[Check, ...] = ()
    keys: tuple[str, ...] = ()
    until: Until = Until.EXISTS
    effect: Effect = Effect.HELD
    source: str


class PodsRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where objects of some kinds have the spec of their pods.

    `labels`: where the labels of these stand. `is_task`: they end by themselves. `later`: there are
    none when the object is applied.
    """

    group: str = ""
    kinds: tuple[str, ...]
    at: str
    labels: str = ""
    is_task: bool = False
    later: bool = False
    source: str


class ProducerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is made of objects of some kinds that no operator's row is about.

    With `images`, only of those that run an image whose name has one of these parts.
    """

    group: str = ""
    kinds: tuple[str, ...]
    produces: tuple[Product, ...]
    images: tuple[str, ...] = ()
    source: str


class WorkloadKind(StrEnum):
    """What an operator runs as."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program of an operator, as it runs where it is usually installed."""

    name: str
    image: str
    kind: WorkloadKind = WorkloadKind.DEPLOYMENT
    labels: dict[str, str] = {}


class Operator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator by name, as it is usually installed; the rows that name it are its kinds."""

    name: str
    namespace: str
    source: str
    workloads: tuple[Workload, ...]
    services: tuple[ServiceProduct, ...] = ()


class Knowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that some files know. Of two entries about the same, the later one counts."""

    operators: tuple[Operator, ...] = ()
    rows: tuple[Row, ...] = ()
    holds: tuple[Hold, ...] = ()
    references: tuple[ReferenceRow, ...] = ()
    pods: tuple[PodsRow, ...] = ()
    producers: tuple[ProducerRow, ...] = ()

    def and_more(self, other: Knowledge) -> Knowledge:
        return Knowledge(
            operators=(*self.operators, *other.operators),
            rows=(*self.rows, *other.rows),
            holds=(*self.holds, *other.holds),
            references=(*self.references, *other.references),
            pods=(*self.pods, *other.pods),
            producers=(*self.producers, *other.producers),
        )
