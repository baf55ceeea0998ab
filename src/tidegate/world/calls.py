"""What can be asked of a world.

A call is a frozen value: a ticket that its answer will carry, the cluster it is for, and a
request. Bodies are bytes, encoded by whoever made them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

import msgspec

from tidegate.model.identity import Identity
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Propagation, Ref

Ticket = NewType("Ticket", int)
"""Names a call among those outstanding. Callers use positive numbers; a line's own are negative."""


class View(StrEnum):
    """How much of each object is told."""

    FULL = "full"
    METADATA = "metadata"


class Verb(StrEnum):
    APPLY = "apply"
    CREATE = "create"
    REPLACE = "replace"
    PATCH = "patch"
    DELETE = "delete"


class PatchForm(StrEnum):
    """How the body of a patch is to be understood."""

    JSON = "json"
    MERGE = "merge"
    STRATEGIC = "strategic"


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a kind: everywhere or in one namespace, by labels and by fields."""

    kind: Kind
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    view: View = View.FULL


class Get(msgspec.Struct, frozen=True):
    ref: Ref
    view: View = View.FULL


class List(msgspec.Struct, frozen=True):
    """A page of a selection; `resume` is what the page before handed over."""

    selection: Selection
    limit: int = 0
    resume: str = ""


class Watch(msgspec.Struct, frozen=True):
    """Every change of a selection, from version `since` on; ended by cancelling its ticket.

    `within`: the namespaces to be content with where the whole cluster is forbidden to see.
    `lasting`: after how long the server is to end it; 0 leaves that to the world.
    """

    selection: Selection
    since: str = ""
    within: tuple[str, ...] = ()
    lasting: Ms = Ms(0)


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one object. `uid` and `version` are preconditions, where given."""

    verb: Verb
    ref: Ref
    body: bytes = b""
    form: PatchForm = PatchForm.MERGE
    subresource: str = ""
    manager: str = ""
    force: bool = False
    dry_run: bool = False
    strict: bool = False
    uid: str = ""
    version: str = ""
    propagation: Propagation | None = None
    grace: int | None = None
    """Seconds that a deletion leaves a pod to end; None leaves it to the pod."""


class Kinds(msgspec.Struct, frozen=True):
    """All kinds that the cluster serves now."""


class Logs(msgspec.Struct, frozen=True, kw_only=True):
    """The end of what a container printed."""

    ref: Ref
    container: str = ""
    tail: int = 0
    previous: bool = False


class Http(msgspec.Struct, frozen=True):
    """A path of the API server that is no object: `/version`, `/readyz`, `/openapi/v3`."""

    path: str
    accept: str = "application/json"


class Local(msgspec.Struct, frozen=True):
    """Work for a worker of this machine; what `name` runs was handed to the world by its maker."""

    name: str
    argument: bytes = b""


Request = Get | List | Watch | Write | Kinds | Logs | Http | Local


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request on its way. Urgent ones pass the others. `until`: after that it is not sent."""

    ticket: Ticket
    request: Request
    cluster: str = ""
    identity: Identity | None = None
    urgent: bool = False
    until: Ms | None = None


def is_repeatable(request: Request) -> bool:
    """Whether asking twice comes to the same as asking once, whatever became of the first."""
    match request:
        case Write(dry_run=True) | Write(verb=Verb.APPLY):
            return True
        case Write(verb=Verb.DELETE):
            return bool(request.uid)
        case Write() | Local():
            return False
        case Get() | List() | Watch() | Kinds() | Logs() | Http():
            return True
