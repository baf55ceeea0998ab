"""Results of rendering: objects with notes about them, or errors."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from tidegate.documents import Document
from tidegate.errors import RenderError, TidegateError
from tidegate.model.k8s.objects import FieldPath
from tidegate.model.units.chart_request import ChartRequest, LookupResult
from tidegate.model.units.release_history import KnownRelease
from tidegate.model.units.source import Revision

UNDECRYPTED_DATA = "render.sops.data"
"""Code of values from an object that no key decrypts; the object itself is reported elsewhere."""
Key = TypeVar("Key")
Value = TypeVar("Value")


class MissingInput(msgspec.Struct, frozen=True):
    """Objects that are unknown because an input is missing."""

    description: str
    """Description of the objects for the user."""
    error: TidegateError
    """Why the input is missing."""
    source: str = ""
    """The name of the chart, or the address of the repository or base."""


class UnknownVariables(msgspec.Struct, frozen=True):
    """An object with variables of a unit that is not in the repository.

    In the objects of the unit, the expansions of its variables are placeholders.
    """

    kind: str
    namespace: str
    name: str
    error: TidegateError
    """Why the values are unknown."""


class RenderedSource(msgspec.Struct, frozen=True):
    """The tree of a source, its revision as far as it is known, and the tool that rendered it."""

    root: Path
    revision: Revision
    tool: str = ""
    is_chart: bool = False
    """Whether charts were rendered, which see the version and the kinds of the cluster."""


class RenderedRelease(msgspec.Struct, frozen=True):
    """A chart with its values, as a revision of a release that exists or will be made."""

    request: ChartRequest
    key: str = ""
    """Digest of everything that the revision is made of."""
    existing: KnownRelease | None = None
    """The record in the cluster of this very revision, if there is one."""
    chart_name: str = ""
    replaced_chart: str = ""
    """Name of the chart whose release is uninstalled before; empty if there is none."""


class RenderResult(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a unit."""

    documents: tuple[Document, ...]
    secret_fields: tuple[tuple[FieldPath, ...], ...]
    """For each object, the fields that were encrypted."""
    undecrypted: tuple[TidegateError, ...] = ()
    """Errors of values that no key decrypts; placeholders replace these values."""
    unknown_variables: tuple[UnknownVariables, ...] = ()
    """Objects with variables that are unknown; placeholders replace the variables."""
    refusals: tuple[TidegateError, ...] = ()
    """Errors for which the engine refuses the unit; a preview goes on with example values."""
    mac_errors: tuple[TidegateError, ...] = ()
    """Encrypted files that were modified after encryption."""
    missing_inputs: tuple[MissingInput, ...] = ()
    """Missing inputs; the objects that they would add are missing, too."""
    notes: tuple[TidegateError, ...] = ()
    """Notes about the result."""
    is_skipped: bool = False
    """Whether it was not rendered, as it cannot contain the searched text."""
    sources: tuple[RenderedSource, ...] = ()
    """What it was rendered from, by source of the unit."""
    remote_bases: tuple[str, ...] = ()
    """Remote bases of its overlays."""
    release: RenderedRelease | None = None
    """The release, where its unit keeps records of one."""
    lookup_error: RenderError | None = None
    """Why it cannot be rendered before objects exist that its templates look up."""

    @property
    def lookups(self) -> Mapping[str, LookupResult]:
        """Lookups of a revision that is not released yet; their responses may change until then."""
        release = self.release
        is_due = release is not None and release.existing is None
        return release.request.lookups or {} if release is not None and is_due else {}

    @property
    def is_deployed(self) -> bool:
        """Whether it is a release that is deployed as desired."""
        existing = self.release.existing if self.release is not None else None
        return existing is not None and existing.is_deployed

    @property
    def has_known_names(self) -> bool:
        """Whether the names of all objects are known, though perhaps not all of their values.

        SOPS leaves the names of objects in plain text, but the values of a chart decide which
        objects it has.
        """
        has_unknown_values = any(error.code == UNDECRYPTED_DATA for error in self.undecrypted)
        return not (self.missing_inputs or self.lookup_error or has_unknown_values)

    @property
    def may_miss_objects(self) -> bool:
        """Whether objects may be missing, and not only values of objects."""
        return bool(self.missing_inputs) or any(
            error.code != UNDECRYPTED_DATA for error in self.undecrypted
        )

    @classmethod
    def merge(cls, parts: Iterable[RenderResult]) -> RenderResult:
        """Return the objects of several sources, one after another."""
        parts = tuple(parts)
        return cls(
            documents=tuple(document for part in parts for document in part.documents),
            secret_fields=tuple(fields for part in parts for fields in part.secret_fields),
            undecrypted=tuple(error for part in parts for error in part.undecrypted),
            unknown_variables=tuple(
                unknown for part in parts for unknown in part.unknown_variables
            ),
            refusals=tuple(error for part in parts for error in part.refusals),
            mac_errors=tuple(error for part in parts for error in part.mac_errors),
            missing_inputs=tuple(
                missing_input for part in parts for missing_input in part.missing_inputs
            ),
            notes=tuple(note for part in parts for note in part.notes),
            is_skipped=any(part.is_skipped for part in parts),
            remote_bases=tuple(base for part in parts for base in part.remote_bases),
        )


class RenderFailure(msgspec.Struct, frozen=True):
    """Why a unit has no objects."""

    errors: tuple[TidegateError, ...]
    trees: tuple[Path, ...] = ()
    """Roots of those trees of its sources that could be fetched."""


def require_deployable(result: RenderResult, *, ignore_sops_mac: bool = False) -> None:
    """Raise for a result that may be previewed but not applied to a real cluster.

    Such a result has placeholders, missing objects, or an encrypted file that was modified after
    encryption. With `ignore_sops_mac` the last one is accepted, like Flux does.
    """
    mac_errors = () if ignore_sops_mac else result.mac_errors
    raise_all(
        (
            *result.undecrypted,
            *result.refusals,
            *(unknown.error for unknown in result.unknown_variables),
            *(missing_input.error for missing_input in result.missing_inputs),
            *mac_errors,
        )
    )


def render_notes(result: RenderResult) -> tuple[TidegateError, ...]:
    """Return the notes about an uncertain preview."""
    missing = (missing_input.error for missing_input in result.missing_inputs)
    return (*result.undecrypted, *result.mac_errors, *missing, *result.notes)


async def gather_results(
    coroutines: Mapping[Key, Coroutine[None, None, Value]],
) -> tuple[dict[Key, Value], dict[Key, TidegateError]]:
    """Run coroutines at once; return their results, and the errors of those that failed."""
    results: dict[Key, Value] = {}
    errors: dict[Key, TidegateError] = {}

    async def attempt(key: Key, coroutine: Coroutine[None, None, Value]) -> None:
        try:
            results[key] = await coroutine
        except TidegateError as error:
            errors[key] = error

    async with asyncio.TaskGroup() as group:
        for key, coroutine in coroutines.items():
            group.create_task(attempt(key, coroutine), name=f"fetch {key}")
    return (
        {key: results[key] for key in coroutines if key in results},
        {key: errors[key] for key in coroutines if key in errors},
    )


def raise_all(errors: tuple[TidegateError, ...]) -> None:
    """Raise these errors: nothing, a single error, or all of them in a group."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("several inputs could not be fetched", errors)


UNKNOWN_APPLICATIONS_CODES = frozenset({"appset.unknown", "appset.unknown-clusters"})
"""Codes of ApplicationSets whose Applications depend on what is not in files."""
UNAVAILABLE_SOURCE_CODES = frozenset(
    {
        *(f"source.git.{why}" for why in ("credentials", "failed", "host-key", "unreachable")),
        *(f"source.git.{why}" for why in ("missing", "untrusted")),
        *(f"source.http.{why}" for why in ("credentials", "failed", "unreachable", "untrusted")),
        *("source.bucket.cloud", "source.bucket.credentials"),
        *(
            "source.bootstrap",
            "source.login",
            "source.object",
            "source.offline",
            "source.placeholder",
        ),
    }
)
"""Codes of errors of sources that cannot be fetched, though the reference to them is valid."""
