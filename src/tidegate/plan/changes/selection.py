"""Selective sync: only selected objects, in their waves, without hooks.

Selectors have the syntax of `argocd app sync --resource`: `GROUP:KIND:[NAMESPACE/]NAME`, where the
core group is empty and `*` matches anything. A leading `!` excludes objects.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import PlanError, UsageError, sanitize
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import Plan, PlanFragment, PlanItem, step_items
from tidegate.plan.build.build import digest_units
from tidegate.plan.build.chains import filter_items, narrow_plan

WILDCARD = "*"
SYNTAX_HINT = (
    "write `GROUP:KIND:[NAMESPACE/]NAME`, such as `apps:Deployment:web` or `:Service:shop/web`"
)


class ResourceSelector(msgspec.Struct, frozen=True):
    """A selector for one object, or for all that match. An empty namespace matches any."""

    text: str
    group: str
    kind: str
    name: str
    namespace: str = ""
    is_excluded: bool = False
    """Whether matching objects are excluded."""

    def matches(self, ref: Ref) -> bool:
        """Return whether an object matches, in any version of its kind."""
        return (
            self.group in {WILDCARD, ref.kind.group}
            and self.kind in {WILDCARD, ref.kind.name}
            and self.name in {WILDCARD, ref.name}
            and self.namespace in {"", WILDCARD, ref.namespace}
        )


def select_objects(plan: Plan, selectors: Iterable[str]) -> Plan:
    """Return another plan, with these objects only and with its own digest.

    Raises PlanError for an invalid selector, and for one that matches nothing.
    """
    refs = [item.ref for step in plan.steps for item in step_items(step) if item.hook is None]
    selected = select_refs(refs, selectors)

    def is_selected(item: PlanItem) -> bool:
        return item.hook is None and item.ref in selected

    narrowed = narrow_plan(plan, lambda step: filter_items(step, is_selected))
    units = digest_units(narrowed.units, narrowed.steps)
    return Plan.from_fragment(
        PlanFragment(units=units, steps=narrowed.steps, edges=narrowed.edges, slots=plan.slots)
    )


def select_refs(refs: Iterable[Ref], texts: Iterable[str]) -> frozenset[Ref]:
    """Return the references that are selected and not excluded.

    Raises PlanError for an invalid selector, and for one that matches nothing.
    """
    known, selectors = frozenset(refs), [parse_selector(text) for text in texts]
    included = [selector for selector in selectors if not selector.is_excluded]
    excluded = [selector for selector in selectors if selector.is_excluded]
    for selector in included:
        if not any(selector.matches(ref) for ref in known):
            problem = f"object `{sanitize(selector.text)}` is not in the plan"
            hint = "list the objects with `tidegate plan`; hooks cannot be selected"
            raise PlanError("plan.selection", problem, hint=hint)
    candidates = (ref for ref in known if not any(selector.matches(ref) for selector in excluded))
    return frozenset(
        ref
        for ref in candidates
        if not included or any(selector.matches(ref) for selector in included)
    )


def parse_selector(text: str) -> ResourceSelector:
    """Parse a selector. Raises UsageError if it is invalid."""
    group, *parts = text.removeprefix("!").split(":", 2)
    if len(parts) != 2 or not all(parts):  # noqa: PLR2004 - kind and name
        problem = f"`{sanitize(text)}` is not a resource selector"
        raise UsageError("usage.selection", problem, hint=SYNTAX_HINT)
    kind, qualified_name = parts
    namespace, _, name = qualified_name.rpartition("/")
    if not name:
        raise UsageError("usage.selection", f"`{sanitize(text)}` has no name", hint=SYNTAX_HINT)
    return ResourceSelector(text, group, kind, name, namespace, text.startswith("!"))
