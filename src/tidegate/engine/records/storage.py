"""Storage format of unit records: Secrets with names and digests, no values of objects.

kubectl get secret -n tidegate-system -l tidegate.dev/unit=shop
"""

from __future__ import annotations

import base64
import re
from typing import ClassVar, TypeVar

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.errors import ClusterError, Location
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import Json, LiveObject, Ref
from tidegate.model.plans.plan import digest_bytes
from tidegate.model.rollouts.journal import JOURNAL_VERSION, JournalEntry, UnitOrigin
from tidegate.model.times import Ms
from tidegate.world.messages import ListPage
from tidegate.world.requests import List, Selection, Verb, Write

TIDEGATE_NAMESPACE = "tidegate-system"
FIELD_MANAGER = "tidegate"
UNIT_LABEL, MARKER_VALUE = "tidegate.dev/unit", "unit"
JOURNAL_LABEL = "tidegate.dev/journal"
"""Label for whether a Secret is the head of a journal or a part."""
JOURNAL_KEY = "journal.json"
PAGE_SIZE = 500
MAX_PARTS = 1_000
"""Maximum number of parts of one journal: 1.5 million objects."""
Content = TypeVar("Content", "RecordHead", "JournalPart")


class StoredEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    ref: Ref
    entry: JournalEntry


class RecordHead(msgspec.Struct, frozen=True):
    """First Secret of a unit record."""

    role: ClassVar[str] = "head"
    version: int = JOURNAL_VERSION
    holder: str = ""
    turn: int = 0
    """Number of times the lease of the unit was acquired."""
    plan: str = ""
    text: str = ""
    """Digest of the desired state that the last rollout applies."""
    source: str = ""
    """Source of that state."""
    origin: UnitOrigin | None = None
    """The unit and its parent."""
    begun: Ms = Ms(0)
    done: str = ""
    """Digest of the last desired state that passed."""
    entered: str = ""
    """Digest of the desired state for which the unit got a slot of its group."""
    parts: int = 0
    entries: tuple[StoredEntry, ...] = ()
    """Entries of a journal without parts."""


class JournalPart(msgspec.Struct, frozen=True):
    """One part of a large journal.

    A process that acquires the lease rewrites all parts, so that the previous holder cannot.
    """

    role: ClassVar[str] = "part"
    turn: int = 0
    entries: tuple[StoredEntry, ...] = ()


class _SecretBody(msgspec.Struct):
    data: dict[str, str] = {}


def read_head(live: LiveObject) -> RecordHead:
    """Return the head of a record. Raise ClusterError if it is damaged or of a newer version."""
    head = read_content(live, RecordHead)
    if not 0 <= head.parts <= MAX_PARTS:
        raise damaged_error(live.ref, "the number of parts is invalid")
    if head.version > JOURNAL_VERSION:
        problem = "the journal of the unit was written by a newer version of Tidegate"
        hint = f"use a version of Tidegate that reads journal version {head.version}"
        raise ClusterError("journal.version", problem, location=_location(live.ref), hint=hint)
    return head


def read_content(live: LiveObject, content_type: type[Content]) -> Content:
    """Return the contents of a record Secret. Raise ClusterError if they cannot be decoded."""
    try:
        data = msgspec.json.decode(live.body, type=_SecretBody).data
        return msgspec.json.decode(base64.b64decode(data.get(JOURNAL_KEY, "")), type=content_type)
    except (ValueError, RecursionError):
        raise damaged_error(live.ref, "its contents cannot be decoded") from None


def damaged_error(ref: Ref, cause: str) -> ClusterError:
    """Return the error for an unreadable record: without it, pruning would miss objects."""
    problem = (
        f"cannot read the journal of the unit: {cause}; the objects to prune, the finished hooks"
        " and the open gates are unknown"
    )
    hint = (
        "rebuild it from the tracking metadata of its objects with"
        " `tidegate status PATH --rebuild-journal`;"
        " the next rollout then runs hooks and evaluates gates again"
    )
    return ClusterError("journal.unreadable", problem, location=_location(ref), hint=hint)


def _location(ref: Ref) -> Location:
    return Location(f"Secret {ref.namespace}/{ref.name}")


def build_secret_write(
    ref: Ref, unit: str, content: RecordHead | JournalPart, version: str
) -> Write:
    """Return the write of a record Secret over the known version, or its creation."""
    metadata: dict[str, Json] = {
        "name": ref.name,
        "namespace": ref.namespace,
        "labels": {UNIT_LABEL: label_value(unit), JOURNAL_LABEL: content.role},
    }
    if version:
        metadata["resourceVersion"] = version
    body: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "tidegate.dev/journal",
        "data": {JOURNAL_KEY: base64.b64encode(msgspec.json.encode(content)).decode()},
    }
    return Write(
        verb=Verb.REPLACE if version else Verb.CREATE,
        ref=ref,
        body=msgspec.json.encode(body),
        manager=FIELD_MANAGER,
        resource_version=version,
    )


def list_heads(cluster: str, namespace: str) -> Procedure[dict[str, LiveObject] | None]:
    """Return all record heads of a cluster by name; None if they cannot be listed."""
    selection = Selection(SECRET, namespace, label_selector=f"{JOURNAL_LABEL}=head")
    heads: dict[str, LiveObject] = {}
    resume = ""
    while True:
        (page,) = yield (ApiCall(cluster, List(selection, PAGE_SIZE, resume)),)
        if not isinstance(page, ListPage):
            return None
        heads.update((live.ref.name, live) for live in page.items)
        resume = page.continue_token
        if not resume:
            return heads


def store_marker(ref: Ref, unit: str, label: str, data: dict[str, str]) -> Write:
    """Return the write of a marker (approval or suspension) of a unit as a ConfigMap.

    Replaces any other.
    """
    metadata: Json = {
        "name": ref.name,
        "namespace": ref.namespace,
        "labels": {label: MARKER_VALUE, UNIT_LABEL: label_value(unit)},
    }
    body: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"unit": unit, **data},
    }
    return Write(
        verb=Verb.APPLY, ref=ref, body=msgspec.json.encode(body), manager=FIELD_MANAGER, force=True
    )


def label_value(unit: str) -> str:
    """Return the name of a unit as a valid label value, shortened if necessary."""
    return re.sub(r"[^A-Za-z0-9_.-]", ".", unit)[:63].strip("._-")


def resource_name(unit: str) -> str:
    """Return an object name that is unique for a unit or process."""
    slug = re.sub(r"[^a-z0-9-]+", "-", unit.lower()).strip("-")[:40].strip("-")
    return f"tidegate-{slug}-{digest_bytes(unit.encode())[:8]}"
