"""What a Kustomization's status says, without what differs from run to run."""

from __future__ import annotations

import re
from pathlib import Path

from tidegate.model.k8s.json_fields import get_list, get_mappings, get_text
from tidegate.model.k8s.objects import Json

TRANSCRIPT = Path(__file__).parents[1] / "data" / "peers" / "kustomize-controller.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SPAN = re.compile(r"\b[0-9.]+(?:m?s|m[0-9.]+s)\b")


def status_fields(resource: dict[str, Json]) -> dict[str, Json]:
    """Its conditions, its inventory in its order, and the revisions."""
    return {
        "conditions": [
            [
                get_text(condition, "type"),
                get_text(condition, "status"),
                get_text(condition, "reason"),
                steady(condition),
            ]
            for condition in sorted(
                get_mappings(resource, "status", "conditions"), key=lambda item: str(item["type"])
            )
        ],
        "inventory": get_list(resource, "status", "inventory", "entries"),
        "lastAppliedRevision": plain(get_text(resource, "status", "lastAppliedRevision")),
        "lastAttemptedRevision": plain(get_text(resource, "status", "lastAttemptedRevision")),
    }


def steady(condition: dict[str, Json]) -> str:
    return plain(get_text(condition, "message"))


def plain(text: str) -> str:
    return _SPAN.sub("SPAN", _COMMIT.sub("COMMIT", text))
