"""Whether a body is an object of its kind: read, cleared of what is unknown, completed, checked."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.objects import Json, Ref
from tidegate.sandbox.server.keeping import keep, keep_part
from tidegate.sandbox.server.register import DEFINITIONS, KindEntry, Refused, invalid
from tidegate.sandbox.server.store import Body, metadata_of
from tidegate.schema.builtin import object_meta
from tidegate.schema.checks import find_problems
from tidegate.schema.decoding import find_decode_problem
from tidegate.schema.mending import drop_nulls, fill_defaults, prune, unknown_fields
from tidegate.schema.validation.definitions import find_definition_problems
from tidegate.schema.validation.names import find_name_problems
from tidegate.schema.validation.requirements import find_unmet
from tidegate.world.facts import Cause, Invalid

ASIDE = frozenset({"metadata", "status"})
"""What can change without anything that a kind requires."""


def inspect(
    body: Body, entry: KindEntry, *, strict: bool, keeps_nulls: bool = False
) -> tuple[Body, tuple[str, ...]]:
    """The object as it can be stored, and what the caller is warned of; or raise why not.

    A null that a CRD does not allow is dropped by those who create or replace, and refused to those
    who apply.
    """
    known, warnings = _read(body, entry, strict=strict)
    whole: Json = known
    if entry.is_custom:
        whole = known if keeps_nulls else drop_nulls(known, entry.shape)
        whole = fill_defaults(whole, entry.shape)
    if not isinstance(whole, dict):
        raise TypeError(whole)
    kept = keep(whole, entry)
    check(kept, entry)
    return kept, warnings


def inspect_change(
    before: Body, body: Body, entry: KindEntry, *, strict: bool
) -> tuple[Body, tuple[str, ...]]:
    """The same for an object that changed. What it shares with the one before was inspected then:
    a controller that writes a status does not pay for the spec."""
    parts = {name: part for name, part in body.items() if before.get(name) is not part}
    if entry.is_custom or not parts.keys() <= ASIDE:
        return inspect(body, entry, strict=strict)
    known, warnings = _read(parts, entry, strict=strict)
    kept = {name: keep_part(part, name, entry) for name, part in known.items()}
    if "metadata" in kept:
        check(kept, entry, asks=find_name_problems(entry.kind, metadata_of(kept)))
    return {**body, **kept}, warnings


def _read(body: Body, entry: KindEntry, *, strict: bool) -> tuple[Body, tuple[str, ...]]:
    """The body without what its kind does not know."""
    if problem := _decode_problem(body, entry):
        raise Refused(Invalid(problem))
    unknown = unknown_fields(body, entry.shape)
    if entry.is_custom:
        unknown = tuple(sorted(unknown))
    if unknown and strict:
        told = ", ".join(f'unknown field "{field}"' for field in unknown)
        causes = (Cause(field, "unknown", "unknown field") for field in unknown)
        raise Refused(Invalid(f"strict decoding error: {told}", tuple(sorted(causes))))
    warnings = tuple(f'unknown field "{field}"' for field in unknown)
    known = prune(body, entry.shape) if unknown else body
    if not isinstance(known, dict):
        raise TypeError(known)
    return known, warnings


def _decode_problem(body: Body, entry: KindEntry) -> str:
    """Of a custom object only the metadata is made a type of; the rest is checked by its schema."""
    if entry.is_custom:
        return find_decode_problem(body.get("metadata"), object_meta())
    return find_decode_problem(body, entry.shape)


def check(body: Body, entry: KindEntry, asks: Iterable[Cause] | None = None) -> None:
    """Raise what is wrong with an object, or with what is asked of it here."""
    problems = list(find_unmet(entry.kind, body) if asks is None else asks)
    if entry.is_custom:
        problems += find_problems(body, entry.shape)
    if entry.kind == DEFINITIONS and asks is None:
        problems += find_definition_problems(body)
    if problems:
        raise invalid(entry, str(metadata_of(body).get("name", "")), problems)


def unfit(problems: tuple[Cause, ...], entry: KindEntry, ref: Ref) -> Refused:
    """An intent that cannot be merged, in the words of the server."""
    told = "; ".join(f".{cause.field}: {cause.message}" for cause in problems)
    group = f"{entry.kind.group}/{entry.kind.version}"
    where = f"{ref.namespace}/{ref.name}; {group}, Kind={entry.kind.name}"
    message = f"failed to create typed patch object ({where}): {told}"
    return Refused(Invalid(message, tuple(sorted(problems))))
