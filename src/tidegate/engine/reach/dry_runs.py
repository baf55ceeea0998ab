"""What a dry run is asked about an object, and what its answer means.

Some objects are tried as new ones. One whose namespace comes with the plan is tried in another
namespace, which every cluster has; only what is said of its text counts there. One that must go
before it can be made again is tried where it is: that it is there is what a server says last.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.engine.means import Body
from tidegate.engine.reach.checking import Examined
from tidegate.engine.reach.writing import told_causes, told_parts, trouble_of
from tidegate.engine.vocabulary import Trouble
from tidegate.model.objects import Kind, Ref, Spot
from tidegate.model.patterns import late
from tidegate.model.reading import mapping
from tidegate.schema.fit import Misfit
from tidegate.world import facts
from tidegate.world.calls import Verb, Write

ELSEWHERE = "default"
"""The namespace that every cluster has."""
POD = Kind("", "v1", "Pod")
"""Limits of a namespace change pods, so no other one can speak for theirs."""
SERVER_ERROR = 500
UNKNOWABLE = (
    facts.Missing | facts.NotServed | facts.Exists | facts.Conflict | facts.Lost | facts.Throttled
)
DENIED = "denied"
NOT_THERE = ("not found", "was found")
QUOTA = late("(exceeded|failed) quota: ")
Likeness: TypeAlias = tuple[object, ...]


class Candidate(NamedTuple):
    """One object that would be written, and what is to be said of it.

    `doubtful`: its text alone does not tell. `askable`: the server knows all that it must to tell.
    `tried_in`: the namespace in which it is tried as a new one, if it is. `mendable`: somebody may
    change the object on its way. `guarded`: somebody has a word in it. `awaits`: what comes with
    the plan and must serve before all can be told. `alike`: objects of which this is the same get
    the same answer; empty where it must be asked about by itself.
    """

    examined: Examined
    misfit: Misfit
    doubtful: bool
    askable: bool
    tried_in: str | None
    mendable: bool
    guarded: bool
    awaits: tuple[Spot, ...]
    alike: Likeness = ()

    @property
    def asked(self) -> bool:
        return self.doubtful and self.askable

    @property
    def moved(self) -> bool:
        return self.tried_in not in (None, self.examined[1].ref.namespace)


def as_new(write: Write, namespace: str) -> Write:
    """The same object made anew, in a namespace that may be another one."""
    ref, body = write.ref, write.body
    if ref.namespace != namespace:
        read: Body = msgspec.json.decode(body)
        moved: Body = {**mapping(read, "metadata"), "namespace": namespace}
        ref, body = (
            Ref(ref.kind, namespace, ref.name),
            msgspec.json.encode(read | {"metadata": moved}),
        )
    return msgspec.structs.replace(
        write, verb=Verb.CREATE, ref=ref, body=body, version="", force=False, strict=True
    )


def is_settled(case: Candidate, outcome: facts.Outcome | None) -> bool:
    """Whether nothing is left to be told of an object that is not at fault."""
    if case.awaits or (case.moved and case.guarded):
        return False
    if outcome is None:
        return not case.doubtful
    return is_taken(case, outcome)


def trouble_with(case: Candidate, outcome: facts.Outcome | None, *, late: bool) -> Trouble | None:
    """What the server says, or what the text says where it cannot be asked."""
    _, item, _ = case.examined
    invalid = () if case.mendable else case.misfit.invalid
    if outcome is None:
        causes = case.misfit.unreadable or invalid
    elif is_taken(case, outcome) or not facts.is_refusal(outcome):
        return None
    elif late or not _is_unknown(case, outcome):
        return trouble_of(outcome, item.ref)
    else:
        causes = invalid if case.moved or isinstance(outcome, facts.Missing) else ()
    if not causes:
        return None
    parts = told_parts(causes, item.ref)
    return Trouble("Invalid", told_causes(causes, item.ref), final=True, parts=parts)


def is_taken(case: Candidate, outcome: facts.Outcome) -> bool:
    """Whether the server takes it, or would if no object of its name lived where it was tried."""
    is_there = case.tried_in is not None and isinstance(outcome, facts.Exists)
    return is_there or not facts.is_refusal(outcome)


def _is_unknown(case: Candidate, outcome: facts.Refusal) -> bool:
    if isinstance(outcome, facts.Invalid):
        # What can be read, somebody who comes with the plan may mend.
        return case.mendable and bool(case.awaits) and not case.misfit.unreadable
    return case.moved or is_unknowable(outcome)


def is_unknowable(outcome: facts.Refusal) -> bool:
    """Whether a dry run says nothing yet: what it needs may come with the plan itself."""
    match outcome:
        case facts.Failed():
            return outcome.status >= SERVER_ERROR
        case facts.Forbidden():
            # A pod is refused while its account, its priority or its runtime is not there. How
            # much there may be can change with the plan, and with what it deletes.
            is_missing = outcome.message.endswith(NOT_THERE) and DENIED not in outcome.message
            return is_missing or QUOTA.search(outcome.message) is not None
        case _:
            return isinstance(outcome, UNKNOWABLE)
