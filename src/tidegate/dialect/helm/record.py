"""Release records: one Secret per revision, readable by Helm 3 and Helm 4.

    kubectl get secret -l owner=helm,name=shop
    data.release  ──  base64 of base64 of gzip of JSON

The whole JSON is kept: unknown fields of a newer Helm survive a change of the status.

Like `encodeRelease` and `decodeRelease` in `pkg/storage/driver/util.go` of Helm 4.
"""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from tidegate.errors import DialectError, Location
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import SECOND, Ms

SECRET_TYPE = "helm.sh/release.v1"  # noqa: S105 - a type, not a secret
PREFIX = "sh.helm.release.v1"
DATA_KEY = "release"
OWNER = ("owner", "helm")
OWNER_SELECTOR = "=".join(OWNER)
SYSTEM_LABELS = frozenset({"name", "owner", "status", "version", "createdAt", "modifiedAt"})
"""Labels that Helm manages; all others belong to the user and are kept."""
ANNOTATION_PREFIX = "tidegate.dev/"
REVISION_LABEL = "tidegate.dev/revision"
"""Label with the revision that the other labels of Tidegate are about."""
MAX_SECRET_BYTES = 1024 * 1024
"""Maximum number of bytes in a Secret."""
MAX_UNPACKED_BYTES = 64 * MAX_SECRET_BYTES
"""Maximum number of bytes of an unpacked record: its content is not trusted."""
GZIP_MAGIC = b"\x1f\x8b\x08"


class ReleaseStatus(StrEnum):
    """Status of a revision, as Helm names it."""

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
"""Statuses of an action in progress or interrupted: Helm starts no other action during it."""
_STATUSES = {status.value: status for status in ReleaseStatus}
_ESCAPED_SLASH = "__"
_LABEL = lazy_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class ReleaseRecord(msgspec.Struct, frozen=True):
    """One revision of a release."""

    content: JsonObject
    labels: Mapping[str, str] = {}
    """Labels of the user."""
    annotations: Mapping[str, str] = {}
    """Annotations of the Secret."""
    created: str = ""
    """When it was first stored, in seconds."""

    def __repr__(self) -> str:
        # Values may be secret, and printed text ends up in logs.
        return f"ReleaseRecord({self.name}.v{self.number}, {self.status})"

    @property
    def name(self) -> str:
        return get_text(self.content, "name")

    @property
    def namespace(self) -> str:
        return get_text(self.content, "namespace")

    @property
    def number(self) -> int:
        return get_int(self.content, "version")

    @property
    def status(self) -> ReleaseStatus:
        return _STATUSES.get(get_text(self.content, "info", "status"), ReleaseStatus.UNKNOWN)

    @property
    def description(self) -> str:
        return get_text(self.content, "info", "description")

    @property
    def manifest(self) -> str:
        return get_text(self.content, "manifest")

    @property
    def config(self) -> JsonObject:
        return get_mapping(self.content, "config")

    @property
    def chart(self) -> tuple[str, str]:
        """Name and version of the chart."""
        metadata = get_mapping(self.content, "chart", "metadata")
        return get_text(metadata, "name"), get_text(metadata, "version")

    @property
    def is_pending(self) -> bool:
        return self.status in PENDING

    def with_status(self, status: ReleaseStatus, description: str, **info: Json) -> ReleaseRecord:
        """Return the revision with another status and further fields of `info`."""
        old_info = get_mapping(self.content, "info")
        new_info = {**old_info, "status": status.value, "description": description, **info}
        return msgspec.structs.replace(self, content={**self.content, "info": new_info})


def record_name(release: str, revision: int) -> str:
    """Return the name of the Secret of a revision."""
    return f"{PREFIX}.{release}.v{revision}"


def record_ref(release: str, revision: int, storage: str) -> Ref:
    return Ref(SECRET, storage, record_name(release, revision))


def release_selector(release: str) -> str:
    """Return the label selector for all revisions of a release."""
    return f"{OWNER_SELECTOR},name={release}"


def encode_release(content: JsonObject) -> bytes:
    """Encode the content of a record like Helm. Raises DialectError if it is too large."""
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(content), 9, mtime=0))
    if len(packed) > MAX_SECRET_BYTES:
        name, revision = get_text(content, "name"), get_int(content, "version")
        problem = (
            f"the record of release `{name}`, revision {revision}, has {len(packed):,} bytes, but"
            f" a Secret can hold {MAX_SECRET_BYTES:,} only"
        )
        hint = "make the chart smaller: the record contains its templates, files and values"
        raise DialectError("dialect.helm.size", problem, hint=hint)
    return packed


def decode_release(packed: bytes, location: Location | None = None) -> JsonObject:
    """Decode the content of a record. Raises DialectError if it is not encoded like Helm does."""
    try:
        content = base64.b64decode(packed, validate=True)
        if content[:3] == GZIP_MAGIC:
            content = _inflate(content)
        release: Json = msgspec.json.decode(content)
    except (ValueError, RecursionError, EOFError, OSError, zlib.error):
        release = None
    if not isinstance(release, dict):
        problem = "cannot read this Helm release record: it is not encoded like Helm does"
        hint = "check whether `helm history` can read it; if not, delete the Secret"
        raise DialectError("dialect.helm.record", problem, location=location, hint=hint)
    return release


def _inflate(content: bytes) -> bytes:
    """Decompress gzip data. Raises ValueError if it is truncated or too large."""
    reader = zlib.decompressobj(wbits=31)
    inflated = reader.decompress(content, MAX_UNPACKED_BYTES)
    if not reader.eof:
        raise ValueError("too large or truncated")
    return inflated


def record_secret(record: ReleaseRecord, storage: str, *, now: Ms, version: str = "") -> JsonObject:
    """Return the Secret of a revision; `version`: the resourceVersion that it replaces, if any."""
    timestamp = str(now // SECOND)
    times = {"createdAt": record.created or timestamp}
    if version:
        times["modifiedAt"] = timestamp
    labels: dict[str, Json] = {
        **record.labels,
        **_annotation_labels(record),
        **times,
        "name": record.name,
        OWNER[0]: OWNER[1],
        "status": record.status.value,
        "version": str(record.number),
    }
    metadata: JsonObject = {
        "name": record_name(record.name, record.number),
        "namespace": storage,
        "labels": labels,
    }
    if record.annotations:
        metadata["annotations"] = {**record.annotations}
    if version:
        metadata["resourceVersion"] = version
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": SECRET_TYPE,
        "data": {DATA_KEY: base64.b64encode(encode_release(record.content)).decode()},
    }


def read_record(body: JsonObject) -> ReleaseRecord:
    """Read the revision in a Secret. Raises DialectError."""
    metadata = get_mapping(body, "metadata")
    location = Location(f"Secret {get_text(metadata, 'namespace')}/{get_text(metadata, 'name')}")
    try:
        packed = base64.b64decode(get_text(body, "data", DATA_KEY), validate=True)
    except ValueError:
        packed = b""
    labels = {key: str(value) for key, value in get_mapping(metadata, "labels").items()}
    user_keys = (
        key for key in labels if key not in SYSTEM_LABELS and not key.startswith(ANNOTATION_PREFIX)
    )
    return ReleaseRecord(
        content=decode_release(packed, location),
        labels={key: labels[key] for key in user_keys},
        annotations=read_annotations(metadata),
        created=labels.get("createdAt", ""),
    )


def read_annotations(metadata: JsonObject) -> dict[str, str]:
    """Return the annotations of a revision, restored from labels if Helm dropped them.

    When Helm rewrites a record, as `helm test` does, it drops annotations and keeps labels; it
    also copies labels to the next revision, for which they are not valid.
    """
    labels = get_mapping(metadata, "labels")
    annotations = {key: str(value) for key, value in get_mapping(metadata, "annotations").items()}
    if any(key.startswith(ANNOTATION_PREFIX) for key in annotations) or labels.get(
        REVISION_LABEL
    ) != labels.get("version"):
        return annotations
    keys = (key for key in labels if key.startswith(ANNOTATION_PREFIX) and key != REVISION_LABEL)
    return annotations | {key: str(labels[key]).replace(_ESCAPED_SLASH, "/") for key in keys}


def _annotation_labels(record: ReleaseRecord) -> dict[str, str]:
    """Return the annotations that fit in labels; slashes are escaped, long values left out."""
    values = {key: value.replace("/", _ESCAPED_SLASH) for key, value in record.annotations.items()}
    keys = (
        key for key in values if key.startswith(ANNOTATION_PREFIX) and _LABEL.fullmatch(values[key])
    )
    labels = {key: values[key] for key in keys}
    return {**labels, REVISION_LABEL: str(record.number)} if labels else {}
