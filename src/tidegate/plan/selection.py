"""Selective sync: only the objects that somebody names, in their waves, without hooks.

Objects are named as Argo CD's command line has it: `GROUP:KIND:[NAMESPACE/]NAME`, where the core
group is empty and `*` stands for anything. `!` before a name leaves objects out.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import PlanError, WordsError, foreign
from tidegate.model.objects import Ref
from tidegate.model.plan import Fragment, Item, Plan, items_of
from tidegate.plan.build import digest_units
from tidegate.plan.chains import keep_items, narrow

ANY = "*"
FORM = "write `GROUP:KIND:[NAMESPACE/]NAME`, such as `apps:Deployment:web` or `:Service:shop/web`"


class Choice(msgspec.Struct, frozen=True):
    """What somebody names: one object, or all that fit. An empty namespace is any."""

    text: str
    group: str
    kind: str
    name: str
    namespace: str = ""
    leaves_out: bool = False

    def fits(self, ref: Ref) -> bool:
        """Whether an object is meant, in whichever version of its kind."""
        return (
            self.group in {ANY, ref.kind.group}
            and self.kind in {ANY, ref.kind.name}
            and self.name in {ANY, ref.name}
            and self.namespace in {"", ANY, ref.namespace}
        )


def select(plan: Plan, wanted: Iterable[str]) -> Plan:
    """The plan with these objects alone. It is another plan, with a digest of its own.

    Raises PlanError for what is no name of an object, and for what fits none.
    """
    refs = [item.ref for step in plan.steps for item in items_of(step) if item.hook is None]
    meant = choose(refs, wanted)

    def is_wanted(item: Item) -> bool:
        return item.hook is None and item.ref in meant

    narrowed = narrow(plan, lambda step: keep_items(step, is_wanted))
    units = digest_units(narrowed.units, narrowed.steps)
    return Plan.of(
        Fragment(units=units, steps=narrowed.steps, edges=narrowed.edges, slots=plan.slots)
    )


def choose(refs: Iterable[Ref], wanted: Iterable[str]) -> frozenset[Ref]:
    """Those that are named; `!` leaves out. Raises PlanError where a name is none, or fits none."""
    known, choices = frozenset(refs), [read_choice(text) for text in wanted]
    chosen = [one for one in choices if not one.leaves_out]
    left_out = [one for one in choices if one.leaves_out]
    for one in chosen:
        if not any(one.fits(ref) for ref in known):
            problem = f"there is no object `{foreign(one.text)}` in the plan"
            hint = "see `tidegate plan` for those there are; hooks cannot be chosen"
            raise PlanError("plan.selection", problem, hint=hint)
    fitting = (ref for ref in known if not any(one.fits(ref) for one in left_out))
    return frozenset(ref for ref in fitting if not chosen or any(one.fits(ref) for one in chosen))


def read_choice(text: str) -> Choice:
    """A name as people write it."""
    group, *rest = text.removeprefix("!").split(":", 2)
    if len(rest) != 2 or not all(rest):  # noqa: PLR2004 - kind and name
        problem = f"`{foreign(text)}` does not name an object"
        raise WordsError("words.selection", problem, hint=FORM)
    kind, spot = rest
    namespace, _, name = spot.rpartition("/")
    if not name:
        raise WordsError("words.selection", f"`{foreign(text)}` has no name", hint=FORM)
    return Choice(text, group, kind, name, namespace, text.startswith("!"))
