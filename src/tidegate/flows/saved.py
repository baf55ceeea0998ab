"""A plan that is kept in a file and run later: exactly that, or not at all.

It holds no secret: who runs it renders again, and a difference is refused. What lived when it was
made is kept as digests with the user's own key, so that a changed cluster is noticed as well.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tidegate.errors import FileError, Place, PlanError, foreign
from tidegate.files import read_users_file
from tidegate.flows.entering import Found
from tidegate.flows.lookups_ahead import LATE
from tidegate.flows.preview import LivePreview, Preview, preview_whole, preview_with_lives
from tidegate.flows.session import Session, servers_of
from tidegate.flows.suspended import with_suspended
from tidegate.flows.syncing import Prepared
from tidegate.model.change import Difference, Fate
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Ref, Spot, read_live
from tidegate.model.plan import Item, Plan, digest_bytes, items_of
from tidegate.model.secret import is_secret_kind
from tidegate.plan.wire import from_json, read_items, to_json
from tidegate.render.own_key import OwnKey

KIND = "TidegateSavedPlan"
VERSION = 1
MOST_NAMED = 3
NOT_SAVED = Finding(
    code="preflight.unsaved",
    severity=Severity.WARNING,
    sentence="the plan is not saved",
    why="nobody could run it: something is wrong with it",
    fix="correct the errors shown beside this",
)
NOT_KNOWN = msgspec.structs.replace(
    NOT_SAVED,
    why="what a release comes to is known when its turn comes, and a saved plan is run as it is",
    fix="roll out what the release looks up, and make the plan again; or `sync` without one",
)
AGAIN = "look at the plan again: `tidegate plan --save FILE`"


class _State(msgspec.Struct, frozen=True):
    """What would become of an object, and a keyed digest of all that this follows from."""

    spot: Spot
    fate: Fate
    digest: str


class _SavedHead(msgspec.Struct):
    kind: str = ""
    version: int = 0


class _SavedDocument(msgspec.Struct):
    """`what`: the PATH it was made of. `words`: options that it was made with, by their names.

    `servers`: by the names of clusters, where they are; a simulated one is nowhere.
    """

    kind: str
    version: int
    what: str
    words: tuple[str, ...]
    servers: dict[str, str]
    states: tuple[_State, ...]
    plan: msgspec.Raw


class SavedPlan:
    """A saved plan that was read and not believed yet."""

    def __init__(self, document: _SavedDocument, name: str) -> None:
        self._document = document
        self._where = Place(name)
        self._key = OwnKey(os.environ).take()

    @property
    def what(self) -> str:
        return self._document.what

    def check_target(self, session: Session) -> None:
        """Raise where it was made for other clusters than these."""
        then, now = self._document.servers, servers_of(session.target)
        for name in dict.fromkeys((*then, *now)):
            if then.get(name) != now.get(name):
                called = f" `{name}`" if name else ""
                problem = (
                    f"the plan was made for {_told_server(then.get(name))},"
                    f" and the cluster{called} is {_told_server(now.get(name))}"
                )
                hint = "choose the same cluster, or make the plan for this one"
                raise PlanError("plan.target", problem, where=self._where, hint=hint)

    def take(self, fresh: Plan) -> Plan:
        """The plan, with what it leaves out taken from one that was rendered now.

        Raises a PlanError where that is not the same, and says what is not.
        """
        text = bytes(self._document.plan)
        told = [*_changes(read_items(text, name=self._where.name), fresh)]
        if told:
            raise self._other_inputs(told)
        bodies = {item.ref: item.body for step in fresh.steps for item in items_of(step)}
        plan = from_json(text, name=self._where.name, bodies=bodies, key=self._key or b"")
        if plan.digest != fresh.digest:
            raise self._other_inputs(["the order, or what is said of its units"])
        return plan

    def check_states(self, looked: LivePreview) -> None:
        """Raise a PlanError where the cluster is not as it was, and say what is not."""
        now, lives = looked
        then = {one.spot: one for one in self._document.states}
        found = {one.spot: one for one in _states(now, lives, self._key)}
        told = [
            _told_state(spot, then.get(spot), found.get(spot))
            for spot in dict.fromkeys((*then, *found))
            if then.get(spot) != found.get(spot)
        ]
        if told:
            problem = f"the cluster has changed since the plan was made: {_few(told)}"
            hint = f"nothing was written; {AGAIN}"
            raise PlanError("plan.lives", problem, where=self._where, hint=hint)

    def _other_inputs(self, told: list[str]) -> PlanError:
        problem = f"what would be rolled out has changed since the plan was made: {_few(told)}"
        words = ", ".join(f"`{one}`" for one in self._document.words)
        same = f"give the same options ({words}), or " if words else ""
        hint = f"nothing was written; {same}{AGAIN}"
        return PlanError("plan.inputs", problem, where=self._where, hint=hint)


def _few(told: list[str]) -> str:
    more = f", and {len(told) - MOST_NAMED:,} more" if len(told) > MOST_NAMED else ""
    return f"{'; '.join(told[:MOST_NAMED])}{more}"


class Making(NamedTuple):
    """What a plan is made of: the PATH, and the options that go with it."""

    what: str
    words: tuple[str, ...] = ()


def save_plan(path: Path, made: Making, looked: LivePreview, session: Session) -> None:
    """Write it where the user says."""
    found, lives = looked
    key = OwnKey(os.environ).take()
    document = _SavedDocument(
        KIND,
        VERSION,
        made.what,
        made.words,
        servers_of(session.target),
        _states(found, lives, key),
        msgspec.Raw(to_json(found.asked, key)),
    )
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    except OSError as error:
        problem = f"the plan cannot be written: {error.strerror}"
        raise FileError("file.plan", problem, where=Place(str(path))) from None


def read_plan(path: Path) -> SavedPlan:
    """Read what `save_plan` wrote."""
    text, where = read_users_file(path), Place(str(path))
    try:
        head = msgspec.json.decode(text, type=_SavedHead)
        if head.kind == KIND and head.version != VERSION:
            problem = f"this plan has version {head.version}, and {VERSION} is read here"
            raise PlanError("plan.version", problem, where=where, hint="make the plan again")
        if head.kind == KIND:
            return SavedPlan(msgspec.json.decode(text, type=_SavedDocument), str(path))
        why = f"its kind is `{foreign(head.kind)}`"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = foreign(str(error))
    raise PlanError("plan.document", f"this is not a saved plan: {why}", where=where)


def _states(found: Preview, lives: Mapping[Spot, bytes], key: bytes | None) -> tuple[_State, ...]:
    """What would become of each object, and why.

    Its status and what servers count are no part of that: a busy object is not a changed one.
    """
    return tuple(
        _State(spot, difference.deed, _digest(difference, lives.get(spot), key))
        for spot, difference in found.differences.items()
    )


class _Secrets(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw(b"null")


def _digest(difference: Difference, live: bytes | None, key: bytes | None) -> str:
    """Covers which object it is, how it differs, and of a Secret what it holds.

    Without a key, values of Secrets could be tried out: then they are left out.
    """
    head = None if live is None else read_live(live)
    parts = [msgspec.json.encode(difference), head.uid.encode() if head else b""]
    if live is not None and head is not None and key and is_secret_kind(head.ref.kind.name):
        parts.append(bytes(msgspec.json.decode(live, type=_Secrets).data))
    keyed = hashlib.blake2b(digest_size=16, key=key or b"")
    for part in parts:
        keyed.update(digest_bytes(part).encode())
    return keyed.hexdigest()


def _changes(then: Mapping[Ref, Item], fresh: Plan) -> Iterator[str]:
    """What differs between two plans, object by object."""
    now = {item.ref: item for step in fresh.steps for item in items_of(step)}
    for ref in dict.fromkeys((*then, *now)):
        if ref not in now:
            yield f"{ref} is gone"
        elif ref not in then:
            yield f"{ref} is new"
        elif then[ref].digest not in ("", now[ref].digest):
            yield f"{ref} differs"


def _told_state(spot: Spot, then: _State | None, now: _State | None) -> str:
    if then is None or now is None:
        return f"{spot.ref} {'is to go now' if then is None else 'needs nothing any more'}"
    if then.fate is now.fate:
        return f"{spot.ref} is not what it was"
    return f"the plan was to {then.fate} {spot.ref}, and would {now.fate} it now"


def _told_server(server: str | None) -> str:
    return "none" if server is None else server or "a simulated cluster"


async def preview_saving(
    session: Session, found: Found, path: Path, made: Making
) -> tuple[Found, list[Preview]]:
    """The preview of what can be rolled out together, written down if nothing is wrong with it."""
    looked = await preview_whole(found.one, session)
    wrong = (*found.findings, *looked.preview.findings)
    refusal = NOT_SAVED if any(one.severity is Severity.ERROR for one in wrong) else None
    if refusal is None and any(one.code == LATE for one in wrong):
        refusal = NOT_KNOWN
    if refusal is not None:
        return found, [replace(looked.preview, findings=(*looked.preview.findings, refusal))]
    save_plan(path, made, looked, session)
    return found, [looked.preview]


async def with_saved(
    saved: SavedPlan, prepared: Prepared, found: Found, session: Session
) -> Prepared:
    """What is to be rolled out by a saved plan. Raises where it is not what would be by now."""
    saved.check_target(session)
    plan = saved.take(prepared.planned.plan)
    families, _ = await with_suspended(found.one, session)
    saved.check_states(await preview_with_lives(families, session))
    return replace(prepared, planned=replace(prepared.planned, plan=plan))
