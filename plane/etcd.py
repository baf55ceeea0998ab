"""Speak to etcd itself, through its JSON gateway, about what the API server hides."""

from __future__ import annotations

import base64
from typing import NamedTuple

from plane.client import Client
from plane.errors import PlaneError
from tidegate.model.k8s.objects import Json


class KeyRevisions(NamedTuple):
    """The revisions of etcd that created a key and last changed it."""

    created: int
    changed: int


_ANY_KEY = base64.b64encode(b"\0").decode()
_ALREADY_COMPACTED = 11


def compact_etcd(etcd: Client) -> int:
    """Make etcd forget every revision but the newest, and say which that is."""
    answer = etcd.post("/v3/kv/range", {"key": _ANY_KEY, "range_end": _ANY_KEY, "limit": "1"})
    match answer:
        case {"header": {"revision": str(revision)}}:
            pass
        case _:
            raise PlaneError("plane.etcd", "etcd does not say its revision")
    options: dict[str, Json] = {"revision": revision, "physical": True}
    answer = etcd.post("/v3/kv/compaction", options, accepted=(200, 400))
    match answer:
        case {"code": int(code)} if code != _ALREADY_COMPACTED:
            raise PlaneError("plane.etcd", f"etcd does not compact revision {revision}")
        case _:
            return int(revision)


def read_revisions(etcd: Client, key: str) -> KeyRevisions | None:
    """When a key was created and last changed, in etcd's order; None if it is not there."""
    encoded = base64.b64encode(key.encode()).decode()
    match etcd.post("/v3/kv/range", {"key": encoded, "keys_only": True}):
        case {"kvs": [{"create_revision": str(created), "mod_revision": str(changed)}]}:
            return KeyRevisions(int(created), int(changed))
        case _:
            return None
