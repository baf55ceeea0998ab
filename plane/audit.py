"""Read the API server's audit log: who did what to which object, and when, on one clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec


class AuditUser(msgspec.Struct, frozen=True, rename="camel"):
    """Who asked."""

    username: str = ""
    groups: tuple[str, ...] = ()


class AuditObject(msgspec.Struct, frozen=True, rename="camel"):
    """Which object a request was about."""

    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    api_version: str = ""


class AuditStatus(msgspec.Struct, frozen=True):
    """What the server answered."""

    code: int = 0


class AuditEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One request. Times are RFC 3339 with microseconds, so they sort as text."""

    stage: str = ""
    verb: str = ""
    user: AuditUser = AuditUser()
    impersonated_user: AuditUser = AuditUser()
    request_received_timestamp: str = ""
    stage_timestamp: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    user_agent: str = ""
    object_ref: AuditObject = AuditObject()
    response_status: AuditStatus = AuditStatus()
    response_object: msgspec.Raw = msgspec.Raw(b"null")


def read_audit(log: Path, *, start: int = 0) -> Iterator[AuditEntry]:
    """Every whole entry from a position on, in the order the server wrote them."""
    decode = msgspec.json.Decoder(AuditEntry).decode
    with log.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            # The server may be in the middle of the last line.
            if line.endswith(b"\n"):
                yield decode(line)
