"""What `decide` hears, `Input`, and what it asks for, `Command`."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.change import FieldChange
from tidegate.model.drift import ObjectDrift
from tidegate.model.event import Event
from tidegate.model.ledger import EntryEnd, HookRun
from tidegate.model.moment import Ms
from tidegate.model.objects import Propagation, Spot
from tidegate.model.plan import Fragment, Item, Plan
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Verdict


class Stand(StrEnum):
    """How an object that is wanted stands against what lives."""

    ABSENT = "absent"
    DIFFERENT = "different"
    IMMUTABLE = "immutable"
    """It differs where it cannot be changed."""
    OBSOLETE = "obsolete"
    """It is to be deleted and made again."""
    SAME = "same"
    LEFT = "left"
    """Its text, or what lives, asks for being left alone."""
    FINISHED = "finished"
    """It did its work with this very text and removed itself."""


class Written(msgspec.Struct, frozen=True, gc=False):
    """The object that a write returned, or that was found to be as wanted.

    `status` names the status it had then. `changed`: our write changed it. `trusted`: it did not,
    and its standing status is known to speak of this very text.
    """

    uid: str
    generation: int
    version: str
    status: str = ""
    changed: bool = False
    trusted: bool = False


class Compared(msgspec.Struct, frozen=True, gc=False):
    """How a text stands against what lives; `fixed` are the fields that cannot be changed.

    `replaces`: it is put in the place of all that is there. `fields`: what differs.
    """

    stand: Stand
    fixed: tuple[str, ...] = ()
    replaces: bool = False
    fields: tuple[FieldChange, ...] = ()


class Standing(msgspec.Struct, frozen=True, gc=False):
    """One object of a step, compared with what lives; the rest as `Compared` has it.

    `drift`: what others have changed, where that is what its unit is looked at for.
    """

    spot: Spot
    stand: Stand
    live: Written | None = None
    fixed: tuple[str, ...] = ()
    replaces: bool = False
    fields: tuple[FieldChange, ...] = ()
    drift: ObjectDrift | None = None


class Trouble(msgspec.Struct, frozen=True, gc=False):
    """Why something was not done. A final one is not worth another try.

    `parts`: the same field by field, where it is about fields.
    """

    reason: str
    sentence: str
    final: bool = False
    parts: tuple[tuple[str, str], ...] = ()


class Begun(msgspec.Struct, frozen=True):
    """`left_out`: units with a fault, which are not begun. `due`: those to be held before.

    `under_way`: those that somebody began with, and that have their slots already.
    """

    plan: Plan
    left_out: dict[UnitId, Trouble] = {}
    due: tuple[UnitId, ...] = ()
    under_way: tuple[UnitId, ...] = ()


class Taken(msgspec.Struct, frozen=True):
    """A unit is ours. `part`: what it comes to by now, where somebody else was at work in it."""

    unit: UnitId
    part: Plan | None = None
    trouble: Trouble | None = None


class Lent(msgspec.Struct, frozen=True):
    """Another rollout of our plan waits for a unit, and we wait ourselves."""

    unit: UnitId


class Checked(msgspec.Struct, frozen=True):
    """How the objects of a step stand, or what is wrong with one of them."""

    step: str
    standings: tuple[Standing, ...] = ()
    trouble: Trouble | None = None


class Foreseen(msgspec.Struct, frozen=True, gc=False):
    """What is wrong with an object of a step, known before its turn; `digest` is the step's."""

    step: str
    digest: str
    trouble: Trouble


class Wrote(msgspec.Struct, frozen=True, gc=False):
    """What became of an apply or a deletion; no object is left of a deletion that took effect."""

    step: str
    spot: Spot
    outcome: Written | Trouble | None


class Judged(msgspec.Struct, frozen=True, gc=False):
    """A verdict about one state of one object; `status` names the status that was judged."""

    spot: Spot
    uid: str
    generation: int
    version: str
    verdict: Verdict
    status: str = ""


class Gone(msgspec.Struct, frozen=True, gc=False):
    spot: Spot
    uid: str


class Expanded(msgspec.Struct, frozen=True):
    step: str
    outcome: Fragment | Trouble
    due: tuple[UnitId, ...] = ()


class Probed(msgspec.Struct, frozen=True, gc=False):
    """Whether an object serves; a trouble says why not yet."""

    step: str
    spot: Spot
    trouble: Trouble | None = None


class Verified(msgspec.Struct, frozen=True, gc=False):
    """Whether a later state of an object still holds what we wrote; a trouble says what does not.

    The state is known by its generation and its version.
    """

    step: str
    spot: Spot
    generation: int
    version: str
    trouble: Trouble | None = None


class Looked(msgspec.Struct, frozen=True, gc=False):
    """The objects of a step were asked for; what there is to tell of them was told before."""

    step: str


class Journaled(msgspec.Struct, frozen=True, gc=False):
    """What had to be remembered before anything else is."""

    step: str


class Collected(msgspec.Struct, frozen=True):
    """The hooks of a unit that were deleted at its end."""

    unit: UnitId
    deleted: tuple[Spot, ...] = ()


class Superseded(msgspec.Struct, frozen=True):
    """A newer plan takes over. Until it is known, nothing more of the present one is begun.

    `left_out`: units of it of which nothing can be done, and why.
    """

    plan: Plan | None
    due: tuple[UnitId, ...] = ()
    left_out: dict[UnitId, Trouble] = {}


class Stopped(msgspec.Struct, frozen=True):
    """No new write, of one unit or of all. `reason` tells who wants it so."""

    reason: str
    unit: UnitId | None = None


class Approved(msgspec.Struct, frozen=True):
    """Somebody lets a step through its barrier, or a unit begin and through all barriers."""

    step: str = ""
    unit: UnitId | None = None


class Refreshed(msgspec.Struct, frozen=True):
    """The source of a unit has nothing newer, or nothing that could be taken.

    `trouble`: it has something that would have to be taken, and why that cannot be.
    """

    unit: UnitId
    trouble: Trouble | None = None


class Rung(msgspec.Struct, frozen=True):
    """The alarm rang."""


AboutObjects = Checked | Wrote | Judged | Gone | Looked | Probed | Verified
AboutOrder = Begun | Expanded | Superseded | Stopped | Approved | Refreshed | Rung
Input = AboutObjects | AboutOrder | Taken | Lent | Foreseen | Journaled | Collected


class Take(msgspec.Struct, frozen=True):
    """Hold a unit, however long that takes; `wanted`: a step of it could begin.

    `anew`: none has. Where others were at work in it, what it comes to is found out again.
    """

    unit: UnitId
    wanted: bool
    anew: bool


class LetGo(msgspec.Struct, frozen=True):
    """Hold a unit no longer, nor wait for it, until it is asked for again."""

    unit: UnitId


class AwaitApproval(msgspec.Struct, frozen=True):
    """Have it told when somebody approves a unit, whoever did before among them."""

    unit: UnitId


class Refresh(msgspec.Struct, frozen=True):
    """Look what the source of a unit has by now; a newer plan supersedes this one.

    `failure`: how it has failed. `hooks`: what became of those that were run for that. `last`:
    everything has passed, and ends unless there is something newer.
    """

    unit: UnitId
    failure: EntryEnd | None = None
    hooks: tuple[HookRun, ...] = ()
    last: bool = False


class CheckStep(msgspec.Struct, frozen=True):
    """Compare the objects of a step with what lives, and validate what was not yet.

    `ended`: how what its unit enters into a ledger came out, where the step stands behind that: it
    tests it, or is there for its failure. `enters`: its unit has one of the slots of its group, and
    keeps it until it has come to its end.
    """

    step: str
    ended: EntryEnd | None = None
    enters: bool = False


class Foresee(msgspec.Struct, frozen=True):
    """What an object promised is served: validate what only waited for that."""

    spot: Spot


class Apply(msgspec.Struct, frozen=True):
    """Write an object. The first of a step is urgent."""

    step: str
    spot: Spot
    item: Item
    urgent: bool = False


class Delete(msgspec.Struct, frozen=True):
    step: str
    spot: Spot
    uid: str
    propagation: Propagation


class LookAgain(msgspec.Struct, frozen=True):
    """Ask how these objects are now: time is up, and what is known of them may be old."""

    step: str
    objects: tuple[tuple[Spot, str], ...]
    """Spot, and the uid of what was written there."""


class Expand(msgspec.Struct, frozen=True):
    step: str


class Probe(msgspec.Struct, frozen=True):
    """Ask whether what an object promises is served."""

    step: str
    spot: Spot


class Verify(msgspec.Struct, frozen=True):
    """Compare what lives with what we wrote: somebody has changed the object since."""

    step: str
    spot: Spot


class Remember(msgspec.Struct, frozen=True):
    """These gates of a step opened for these objects.

    The verdict of a hook is remembered before anybody may delete it: the answer is awaited then.
    """

    step: str
    opened: tuple[tuple[Spot, str, str], ...]
    """Spot, digest of the text, uid."""
    hooks: tuple[Spot, ...] = ()


class Collect(msgspec.Struct, frozen=True):
    """A unit is at rest: let its hooks go, and delete those whose policy says so.

    `runs`: how each of them ended, where that counts, and not how the unit did.
    """

    unit: UnitId
    failed: bool
    runs: tuple[HookRun, ...] | None = None


ToObjects = Apply | Delete | LookAgain | Probe | Verify
Command = (
    ToObjects
    | Take
    | LetGo
    | AwaitApproval
    | Refresh
    | CheckStep
    | Foresee
    | Expand
    | Remember
    | Collect
)


class Decision(msgspec.Struct):
    """What to do, what to tell, and when to ask again at the latest."""

    commands: list[Command]
    events: list[Event]
    alarm: Ms | None = None
