"""What a Kustomization's status says, without what differs from run to run."""

from __future__ import annotations

import re
from pathlib import Path

from tidegate.model.objects import Json
from tidegate.model.reading import listed, mappings, text

TRANSCRIPT = Path(__file__).parents[1] / "data" / "peers" / "kustomize-controller.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SPAN = re.compile(r"\b[0-9.]+(?:m?s|m[0-9.]+s)\b")


def said_of(own: dict[str, Json]) -> dict[str, Json]:
    """Its conditions, its inventory in its order, and the revisions."""
    return {
        "conditions": [
            [text(one, "type"), text(one, "status"), text(one, "reason"), steady(one)]
            for one in sorted(
                mappings(own, "status", "conditions"), key=lambda one: str(one["type"])
            )
        ],
        "inventory": listed(own, "status", "inventory", "entries"),
        "lastAppliedRevision": plain(text(own, "status", "lastAppliedRevision")),
        "lastAttemptedRevision": plain(text(own, "status", "lastAttemptedRevision")),
    }


def steady(condition: dict[str, Json]) -> str:
    return plain(text(condition, "message"))


def plain(said: str) -> str:
    return _SPAN.sub("SPAN", _COMMIT.sub("COMMIT", said))
