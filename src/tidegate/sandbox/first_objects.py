"""What every new cluster has: namespaces with their accounts, a node, a class of storage."""

from __future__ import annotations

from pathlib import Path

from tidegate.documents import read
from tidegate.model.objects import Json

BASE = Path(__file__).with_name("base.yaml")


def base_objects() -> list[dict[str, Json]]:
    """All of it, as written down."""
    return [document.body for document in read(BASE.read_bytes(), BASE.name)]
