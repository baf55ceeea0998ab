"""Requests to a World.

A `Call` is a frozen value: a request with its id and its cluster. Bodies are bytes, encoded by
the caller.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

import msgspec

from tidegate.model.k8s.objects import Kind, Propagation, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.identity import ImpersonatedUser

RequestId = NewType("RequestId", int)
"""Identifies a call among the outstanding ones.

Callers use positive numbers; `ResilientWorld` uses negative numbers for its own calls.
"""


class View(StrEnum):
    """How much of each object is returned."""

    FULL = "full"
    METADATA = "metadata"


class Verb(StrEnum):
    """Verb of a write."""

    APPLY = "apply"
    CREATE = "create"
    REPLACE = "replace"
    PATCH = "patch"
    DELETE = "delete"


class PatchType(StrEnum):
    """Format of the body of a patch."""

    JSON = "json"
    MERGE = "merge"
    STRATEGIC = "strategic"


class Selection(msgspec.Struct, frozen=True):
    """Objects of one kind: in one namespace or in all, by label and field selectors."""

    kind: Kind
    """The kind."""
    namespace: str = ""
    """The namespace; empty for all."""
    label_selector: str = ""
    """Label selector; empty for none."""
    field_selector: str = ""
    """Field selector; empty for none."""
    view: View = View.FULL
    """How much of each object is returned."""


class Get(msgspec.Struct, frozen=True):
    """One object."""

    ref: Ref
    """The object."""
    view: View = View.FULL
    """How much of the object is returned."""


class List(msgspec.Struct, frozen=True):
    """One page of a list."""

    selection: Selection
    """The objects to list."""
    limit: int = 0
    """Maximum number of objects; 0 for no limit."""
    continue_token: str = ""
    """Continue token of the previous page; empty for the first page."""


class Watch(msgspec.Struct, frozen=True):
    """All changes of a selection. Cancel the request id to end the watch."""

    selection: Selection
    """The objects to watch."""
    resource_version: str = ""
    """Resource version to start from. If it is empty, a `ResilientWorld` lists first."""
    fallback_namespaces: tuple[str, ...] = ()
    """Namespaces to watch instead if watching all namespaces is forbidden."""
    timeout: Ms = Ms(0)
    """After how long the server ends the watch; 0 for the default of the World."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one object."""

    verb: Verb
    """The verb."""
    ref: Ref
    """The object."""
    body: bytes = b""
    """The object or the patch; empty for a deletion."""
    patch_type: PatchType = PatchType.MERGE
    """The format of a patch."""
    subresource: str = ""
    """The subresource to write; empty for the object itself."""
    manager: str = ""
    """Field manager."""
    force: bool = False
    """Whether an apply takes fields over from other managers."""
    dry_run: bool = False
    """Whether the server only checks the write."""
    strict: bool = False
    """Whether unknown and duplicate fields are errors (`fieldValidation=Strict`)."""
    uid: str = ""
    """Precondition: the UID of the live object. Empty for none."""
    resource_version: str = ""
    """Precondition: the resource version of the live object. Empty for none."""
    propagation: Propagation | None = None
    """Propagation policy of a deletion; None for the default of the kind."""
    grace_period_seconds: int | None = None
    """Seconds that a deletion gives a pod to terminate; None for the pod's own grace period."""


MAX_DISCOVERY_AGE = Ms(10 * SECOND)
"""Age of a discovery that is recent enough to choose the version of a kind."""


class Discover(msgspec.Struct, frozen=True):
    """API discovery: all kinds that the cluster serves now."""

    max_age: Ms = Ms(0)
    """Age of an earlier discovery that may be returned instead."""


class Logs(msgspec.Struct, frozen=True, kw_only=True):
    """The last log lines of a container."""

    ref: Ref
    """The pod."""
    container: str = ""
    """The container; empty for the only one."""
    tail: int = 0
    """Number of lines; 0 for all."""
    previous: bool = False
    """Whether to return the log of the previous run."""


class RawGet(msgspec.Struct, frozen=True):
    """GET of an API path that is not an object: `/version`, `/readyz`, `/openapi/v3`."""

    path: str
    """The API path."""
    accept: str = "application/json"
    """The `Accept` header."""


class RunWorker(msgspec.Struct, frozen=True):
    """A job for a worker on this machine."""

    name: str
    """Name of a worker that the World was created with."""
    argument: bytes = b""
    """The encoded request to the worker."""


Request = Get | List | Watch | Write | Discover | Logs | RawGet | RunWorker


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its id and cluster."""

    request_id: RequestId
    """The id that the messages about the call carry."""
    request: Request
    """The request."""
    cluster: str = ""
    """The cluster; empty for the only one."""
    identity: ImpersonatedUser | None = None
    """User to impersonate."""
    urgent: bool = False
    """Whether the call overtakes calls that are not urgent."""
    deadline: Ms | None = None
    """Latest time to send the call."""


def describe_target(request: Request) -> str:
    """Return what a request is about: an object, a selection, a path or a worker."""
    match request:
        case Get(ref=ref) | Write(ref=ref) | Logs(ref=ref):
            return str(ref)
        case List(selection=selection) | Watch(selection=selection):
            return repr(selection)
        case RawGet(path=path):
            return path
        case RunWorker(name=name):
            return name
        case Discover():
            return "discovery"


def is_idempotent(request: Request) -> bool:
    """Return whether sending a request again has no further effect, however the first attempt
    ended.
    """
    match request:
        case Write(dry_run=True) | Write(verb=Verb.APPLY):
            return True
        case Write(verb=Verb.DELETE):
            return bool(request.uid)
        case Write() | RunWorker():
            return False
        case Get() | List() | Watch() | Discover() | Logs() | RawGet():
            return True
