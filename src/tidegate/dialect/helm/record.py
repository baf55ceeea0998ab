"""Helm's record of a release: one Secret for each revision, as helm 3 and helm 4 read it.

    kubectl get secret -l owner=helm,name=shop
    data.release  ──  base64 of base64 of gzip of JSON

The JSON is kept whole: what a newer Helm has written there, and nobody here knows, stays when a
status is changed.
"""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from tidegate.errors import DialectError, Place
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.patterns import late
from tidegate.model.reading import mapping, number, text

Body = dict[str, Json]
SECRET = Kind("", "v1", "Secret")
TYPE = "helm.sh/release.v1"
PREFIX = "sh.helm.release.v1"
KEY = "release"
OWNER = ("owner", "helm")
OWNED = "=".join(OWNER)
SYSTEM = frozenset({"name", "owner", "status", "version", "createdAt", "modifiedAt"})
"""Labels that are Helm's own; others are the user's, and stay."""
NOTES = "tidegate.dev/"
NOTED = "tidegate.dev/revision"
"""What we note of a revision begins so; as labels, with the revision that they are about."""
MOST = 1024 * 1024
"""How many bytes a Secret can hold."""
MOST_READ = 64 * MOST
"""How many bytes a record may come to when it is unpacked: a stranger may have written it."""
GZIP = b"\x1f\x8b\x08"


class ReleaseStatus(StrEnum):
    """How a revision stands, in Helm's words."""

    UNKNOWN = "unknown"
    DEPLOYED = "deployed"
    UNINSTALLED = "uninstalled"
    SUPERSEDED = "superseded"
    FAILED = "failed"
    UNINSTALLING = "uninstalling"
    PENDING_INSTALL = "pending-install"
    PENDING_UPGRADE = "pending-upgrade"
    PENDING_ROLLBACK = "pending-rollback"


PENDING = frozenset(
    {
        ReleaseStatus.PENDING_INSTALL,
        ReleaseStatus.PENDING_UPGRADE,
        ReleaseStatus.PENDING_ROLLBACK,
    }
)
"""Somebody is at work, or was when it died: Helm begins nothing while a revision is pending."""
_STATUSES = {one.value: one for one in ReleaseStatus}
_SLASH = "__"
_LABEL = late(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class ReleaseRecord(msgspec.Struct, frozen=True):
    """One revision of a release.

    `labels` are the user's own, `notes` the annotations of the Secret; `created` is when it was
    first stored, in seconds.
    """

    content: Body
    labels: Mapping[str, str] = {}
    notes: Mapping[str, str] = {}
    created: str = ""

    def __repr__(self) -> str:
        # Values may be secret, and what is printed ends in logs.
        return f"ReleaseRecord({self.name}.v{self.number}, {self.status})"

    @property
    def name(self) -> str:
        return text(self.content, "name")

    @property
    def namespace(self) -> str:
        return text(self.content, "namespace")

    @property
    def number(self) -> int:
        return number(self.content, "version")

    @property
    def status(self) -> ReleaseStatus:
        return _STATUSES.get(text(self.content, "info", "status"), ReleaseStatus.UNKNOWN)

    @property
    def description(self) -> str:
        return text(self.content, "info", "description")

    @property
    def manifest(self) -> str:
        return text(self.content, "manifest")

    @property
    def config(self) -> Body:
        return mapping(self.content, "config")

    @property
    def chart(self) -> tuple[str, str]:
        """The name and the version of its chart."""
        metadata = mapping(self.content, "chart", "metadata")
        return text(metadata, "name"), text(metadata, "version")

    @property
    def is_pending(self) -> bool:
        return self.status in PENDING

    def become(self, status: ReleaseStatus, description: str, **info: Json) -> ReleaseRecord:
        """The same revision with another status, and with more of what is told of it."""
        known = mapping(self.content, "info")
        told = {**known, "status": status.value, "description": description, **info}
        return msgspec.structs.replace(self, content={**self.content, "info": told})


def record_name(release: str, revision: int) -> str:
    """What the Secret of a revision is called."""
    return f"{PREFIX}.{release}.v{revision}"


def record_ref(release: str, revision: int, storage: str) -> Ref:
    return Ref(SECRET, storage, record_name(release, revision))


def selector_of(release: str) -> str:
    """The labels by which all revisions of a release are found."""
    return f"{OWNED},name={release}"


def pack(content: Body) -> bytes:
    """What the Secret holds, as Helm packs it. Raises DialectError where no Secret can hold it."""
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(content), 9, mtime=0))
    if len(packed) > MOST:
        name, revision = text(content, "name"), number(content, "version")
        problem = (
            f"the record of the release `{name}`, revision {revision}, has {len(packed):,} bytes,"
            f" and a Secret holds {MOST:,}"
        )
        hint = "make the chart smaller: templates, files and values are all in the record"
        raise DialectError("dialect.helm.size", problem, hint=hint)
    return packed


def unpack(packed: bytes, where: Place | None = None) -> Body:
    """What a Secret of Helm's holds. Raises DialectError for what is none."""
    try:
        content = base64.b64decode(packed, validate=True)
        if content[:3] == GZIP:
            content = _inflate(content)
        found: Json = msgspec.json.decode(content)
    except (ValueError, RecursionError, EOFError, OSError, zlib.error):
        found = None
    if not isinstance(found, dict):
        problem = "this record of a release cannot be read: it is not packed as Helm packs them"
        hint = "see whether `helm history` reads it; delete the Secret if nobody does"
        raise DialectError("dialect.helm.record", problem, where=where, hint=hint)
    return found


def _inflate(content: bytes) -> bytes:
    """A bomb is no record."""
    reader = zlib.decompressobj(wbits=31)
    whole = reader.decompress(content, MOST_READ)
    if not reader.eof:
        raise ValueError("it is too large, or not whole")
    return whole


def secret_of(record: ReleaseRecord, storage: str, *, now: Ms, version: str = "") -> Body:
    """The Secret of a revision; over `version`, where it is there already."""
    moment = str(now // SECOND)
    times = {"createdAt": record.created or moment}
    if version:
        times["modifiedAt"] = moment
    labels: dict[str, Json] = {
        **record.labels,
        **_as_labels(record),
        **times,
        "name": record.name,
        OWNER[0]: OWNER[1],
        "status": record.status.value,
        "version": str(record.number),
    }
    metadata: Body = {
        "name": record_name(record.name, record.number),
        "namespace": storage,
        "labels": labels,
    }
    if record.notes:
        metadata["annotations"] = {**record.notes}
    if version:
        metadata["resourceVersion"] = version
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": TYPE,
        "data": {KEY: base64.b64encode(pack(record.content)).decode()},
    }


def read_record(body: Body) -> ReleaseRecord:
    """The revision that a Secret holds. Raises DialectError."""
    metadata = mapping(body, "metadata")
    where = Place(f"Secret {text(metadata, 'namespace')}/{text(metadata, 'name')}")
    try:
        packed = base64.b64decode(text(body, "data", KEY), validate=True)
    except ValueError:
        packed = b""
    labels = {key: str(one) for key, one in mapping(metadata, "labels").items()}
    theirs = (key for key in labels if key not in SYSTEM and not key.startswith(NOTES))
    return ReleaseRecord(
        content=unpack(packed, where),
        labels={key: labels[key] for key in theirs},
        notes=notes_of(metadata),
        created=labels.get("createdAt", ""),
    )


def notes_of(metadata: Body) -> dict[str, str]:
    """What is noted of a revision, by what its Secret says of itself.

    When Helm writes a record anew, as `helm test` does, it drops annotations and keeps labels; it
    also copies those to the next revision, which they say nothing about.
    """
    labels = mapping(metadata, "labels")
    notes = {key: str(one) for key, one in mapping(metadata, "annotations").items()}
    if any(key.startswith(NOTES) for key in notes) or labels.get(NOTED) != labels.get("version"):
        return notes
    kept = (key for key in labels if key.startswith(NOTES) and key != NOTED)
    return notes | {key: str(labels[key]).replace(_SLASH, "/") for key in kept}


def _as_labels(record: ReleaseRecord) -> dict[str, str]:
    """The notes that can be labels: names of units have slashes, and may be too long."""
    words = {key: one.replace("/", _SLASH) for key, one in record.notes.items()}
    ours = (key for key in words if key.startswith(NOTES) and _LABEL.fullmatch(words[key]))
    noted = {key: words[key] for key in ours}
    return {**noted, NOTED: str(record.number)} if noted else {}
