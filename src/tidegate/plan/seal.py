"""A seal on what we own of a live object: while it is unbroken, nobody touched our fields."""

from __future__ import annotations

import hashlib

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import text
from tidegate.plan.owned import Body, fields_of, owned_part

SIZE = 16
_encode = msgspec.json.Encoder().encode


def is_secret(body: Body) -> bool:
    return body.get("kind") == "Secret" and body.get("apiVersion") == "v1"


def seal(live: Body, manager: str) -> str:
    """Changes when a field of ours changes, when what is ours does, or with another object.

    A Secret's says nothing of its values: it changes with every write to the object.
    """
    uid = text(live, "metadata", "uid")
    if is_secret(live):
        return _digest(uid, text(live, "metadata", "resourceVersion"))
    return _digest(uid, fields_of(live, manager), owned_part(live, manager))


def digest_of(wanted: Body) -> str:
    """A name for exactly this content; none for a Secret, whose values could be guessed from it."""
    return "" if is_secret(wanted) else _digest(wanted)


def _digest(*parts: Json) -> str:
    return hashlib.blake2b(_encode([*parts]), digest_size=SIZE).hexdigest()
