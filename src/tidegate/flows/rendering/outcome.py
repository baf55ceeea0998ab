"""What rendering gives: objects and what is to be said about them, or the errors."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from tidegate.documents import Document, FieldPath
from tidegate.errors import RenderError, TidegateError
from tidegate.model.ledger import KnownRelease
from tidegate.model.release import LookedUp, Release
from tidegate.model.source import Revision

SEALED_DATA = "render.sops.data"
"""The code of values that stand in what no key opens; that itself is told where it is brought."""

Key = TypeVar("Key")
Got = TypeVar("Got")


class Weakened(msgspec.Struct, frozen=True):
    """Objects that could not be known, in words, and the error that says why."""

    unknown: str
    why: TidegateError


class BuiltTree(msgspec.Struct, frozen=True):
    """The tree of a source, its revision as far as that is known, and the tool that took it."""

    root: Path
    revision: Revision
    tool: str = ""


class RevisedRelease(msgspec.Struct, frozen=True):
    """A chart with its values, as the revision of a release that it is or will be.

    `key` names all that it is made of; `known` is the cluster's record of that very release, if it
    has one. `chart`: the name of its chart; `former`: that of the one which is uninstalled before.
    """

    release: Release
    key: str = ""
    known: KnownRelease | None = None
    chart: str = ""
    former: str = ""


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a unit.

    `hidden` names, for each, the fields that stood encrypted. `locked` says what no key opens:
    placeholders stand there. `suspect` says which encrypted files were changed by hand. Where
    something is `weakened`, there are objects that are not here. `notes`: what else to know. Where
    it `is_unread`, nobody has rendered it: it holds nothing that is sought. `built`: by source of
    the unit, what it was rendered from. `bases`: what its overlays name elsewhere. `revised`: the
    chart with its values, where it is one that its unit keeps records of. `unmet`: why it cannot be
    rendered before what its templates look up is there.
    """

    documents: tuple[Document, ...]
    hidden: tuple[tuple[FieldPath, ...], ...]
    locked: tuple[TidegateError, ...] = ()
    suspect: tuple[TidegateError, ...] = ()
    weakened: tuple[Weakened, ...] = ()
    notes: tuple[TidegateError, ...] = ()
    is_unread: bool = False
    built: tuple[BuiltTree, ...] = ()
    bases: tuple[str, ...] = ()
    revised: RevisedRelease | None = None
    unmet: RenderError | None = None

    @property
    def looked_up(self) -> Mapping[str, LookedUp]:
        """What its templates found, where it is about to be released: it may be another by then."""
        revised = self.revised
        is_due = revised is not None and revised.known is None
        return revised.release.lookups or {} if revised is not None and is_due else {}

    @property
    def is_deployed(self) -> bool:
        """Whether it is a release that stands as it is wanted."""
        known = self.revised.known if self.revised is not None else None
        return known is not None and known.is_deployed

    @property
    def lacks_objects(self) -> bool:
        """Whether there may be others, and not only other values in those that are here."""
        return bool(self.weakened) or any(one.code != SEALED_DATA for one in self.locked)

    @classmethod
    def together(cls, parts: Iterable[Rendered]) -> Rendered:
        """The objects of several sources, one after another."""
        parts = tuple(parts)
        return cls(
            documents=tuple(document for one in parts for document in one.documents),
            hidden=tuple(hidden for one in parts for hidden in one.hidden),
            locked=tuple(error for one in parts for error in one.locked),
            suspect=tuple(error for one in parts for error in one.suspect),
            weakened=tuple(lack for one in parts for lack in one.weakened),
            notes=tuple(note for one in parts for note in one.notes),
            is_unread=any(one.is_unread for one in parts),
            bases=tuple(base for one in parts for base in one.bases),
        )


class Unrendered(msgspec.Struct, frozen=True):
    """Why a unit has no objects."""

    errors: tuple[TidegateError, ...]


def refuse_unsound(rendered: Rendered, *, takes_broken_seals: bool = False) -> None:
    """Raise for what may be previewed and must not be applied to a real cluster.

    That is where placeholders stand in, where objects are missing, and where an encrypted file was
    changed by hand, unless somebody `takes_broken_seals` as Flux does.
    """
    seals = () if takes_broken_seals else rendered.suspect
    raise_all((*rendered.locked, *(one.why for one in rendered.weakened), *seals))


def notes_of(rendered: Rendered) -> tuple[TidegateError, ...]:
    """What is not certain about a preview."""
    missing = (one.why for one in rendered.weakened)
    return (*rendered.locked, *rendered.suspect, *missing, *rendered.notes)


async def attempt_all(
    wanted: Mapping[Key, Coroutine[None, None, Got]],
) -> tuple[dict[Key, Got], dict[Key, TidegateError]]:
    """All of it at once: what was had, and why the rest was not."""
    got: dict[Key, Got] = {}
    errors: dict[Key, TidegateError] = {}

    async def attempt(key: Key, one: Coroutine[None, None, Got]) -> None:
        try:
            got[key] = await one
        except TidegateError as error:
            errors[key] = error

    async with asyncio.TaskGroup() as group:
        for key, one in wanted.items():
            group.create_task(attempt(key, one), name=f"fetch {key}")
    return (
        {key: got[key] for key in wanted if key in got},
        {key: errors[key] for key in wanted if key in errors},
    )


def raise_all(errors: tuple[TidegateError, ...]) -> None:
    """Raise what there is: nothing, one error, or all of them together."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("several things cannot be had", errors)
