"""How a record lies in its cluster: Secrets of names and digests, and what they are called.

kubectl get secret -n tidegate-system -l tidegate.dev/unit=shop
"""

from __future__ import annotations

import base64
import re
from typing import ClassVar, TypeVar

import msgspec

from tidegate.engine.reach.errands import Ask, Errand
from tidegate.errors import ClusterError, Place
from tidegate.model.journal import VERSION, Entry, Kin
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.model.plan import digest_bytes
from tidegate.world.calls import List, Selection, Verb, Write
from tidegate.world.facts import Listed

NAMESPACE = "tidegate-system"
MANAGER = "tidegate"
SECRET = Kind("", "v1", "Secret")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
UNIT, OF_UNIT = "tidegate.dev/unit", "unit"
JOURNAL = "tidegate.dev/journal"
"""A label: whether a Secret is the head of a journal, or a part."""
KEY = "journal.json"
PAGE = 500
MOST_PARTS = 1_000
"""Of one journal: a million and a half objects."""
Content = TypeVar("Content", "Head", "JournalPart")


class StoredLine(msgspec.Struct, frozen=True, omit_defaults=True):
    ref: Ref
    entry: Entry


class Head(msgspec.Struct, frozen=True):
    """`text` is the digest of what a rollout is bringing, `done` of the last that passed.

    `entered` is that of a text for which the unit got one of its group's slots. `source` is where
    the text lies, `kin` who brings the unit. `turn` counts how often the unit was taken. The
    entries are here while there are no parts.
    """

    role: ClassVar[str] = "head"
    version: int = VERSION
    holder: str = ""
    turn: int = 0
    plan: str = ""
    text: str = ""
    source: str = ""
    kin: Kin | None = None
    begun: Ms = Ms(0)
    done: str = ""
    entered: str = ""
    parts: int = 0
    entries: tuple[StoredLine, ...] = ()


class JournalPart(msgspec.Struct, frozen=True):
    """Who takes a unit writes all parts anew, so that nobody can who had it before."""

    role: ClassVar[str] = "part"
    turn: int = 0
    entries: tuple[StoredLine, ...] = ()


class _Secret(msgspec.Struct):
    data: dict[str, str] = {}


def read_head(live: Live) -> Head:
    """Raises ClusterError."""
    head = read(live, Head)
    if not 0 <= head.parts <= MOST_PARTS:
        raise damaged(live.ref, "it counts parts that nobody wrote")
    if head.version > VERSION:
        problem = "what is remembered of a unit was written by a newer tidegate"
        hint = "use that version, or a newer one"
        raise ClusterError("journal.version", problem, where=_place(live.ref), hint=hint)
    return head


def read(live: Live, kind: type[Content]) -> Content:
    """What a Secret holds. Raises ClusterError."""
    try:
        data = msgspec.json.decode(live.body, type=_Secret).data
        return msgspec.json.decode(base64.b64decode(data.get(KEY, "")), type=kind)
    except (ValueError, RecursionError):
        raise damaged(live.ref, "its text is not whole") from None


def damaged(ref: Ref, how: str) -> ClusterError:
    """Nobody goes on without what a unit has brought: pruning and deleting would leave it there."""
    problem = (
        f"what is remembered of a unit cannot be read, as {how}: what it has brought and Git no"
        " longer has, which hooks ran, and which gates opened"
    )
    hint = (
        "`tidegate journal rebuild PATH` makes it anew from the marks on its objects;"
        " hooks are run again then, and every gate is judged again"
    )
    return ClusterError("journal.unreadable", problem, where=_place(ref), hint=hint)


def _place(ref: Ref) -> Place:
    return Place(f"Secret {ref.namespace}/{ref.name}")


def put(ref: Ref, unit: str, content: Head | JournalPart, version: str) -> Write:
    """Write a Secret over the version that is known, or as the first one."""
    metadata: dict[str, Json] = {
        "name": ref.name,
        "namespace": ref.namespace,
        "labels": {UNIT: label_value(unit), JOURNAL: content.role},
    }
    if version:
        metadata["resourceVersion"] = version
    body: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "tidegate.dev/journal",
        "data": {KEY: base64.b64encode(msgspec.json.encode(content)).decode()},
    }
    return Write(
        verb=Verb.REPLACE if version else Verb.CREATE,
        ref=ref,
        body=msgspec.json.encode(body),
        manager=MANAGER,
        version=version,
    )


def list_heads(cluster: str, namespace: str) -> Errand[dict[str, Live] | None]:
    """All heads of a cluster by name; None where they cannot be listed."""
    selection = Selection(SECRET, namespace, labels=f"{JOURNAL}=head")
    found: dict[str, Live] = {}
    resume = ""
    while True:
        (page,) = yield (Ask(cluster, List(selection, PAGE, resume)),)
        if not isinstance(page, Listed):
            return None
        found.update((live.ref.name, live) for live in page.items)
        resume = page.resume
        if not resume:
            return found


def keep_word(ref: Ref, unit: str, label: str, said: dict[str, str]) -> Write:
    """What somebody says of a unit, in a ConfigMap; what was said before is replaced."""
    metadata: Json = {
        "name": ref.name,
        "namespace": ref.namespace,
        "labels": {label: OF_UNIT, UNIT: label_value(unit)},
    }
    body: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"unit": unit, **said},
    }
    return Write(
        verb=Verb.APPLY, ref=ref, body=msgspec.json.encode(body), manager=MANAGER, force=True
    )


def label_value(unit: str) -> str:
    """A unit's name as far as a label can hold it."""
    return re.sub(r"[^A-Za-z0-9_.-]", ".", unit)[:63].strip("._-")


def resource_name(unit: str) -> str:
    """A name for an object of ours that no other unit or process has."""
    slug = re.sub(r"[^a-z0-9-]+", "-", unit.lower()).strip("-")[:40].strip("-")
    return f"tidegate-{slug}-{digest_bytes(unit.encode())[:8]}"
