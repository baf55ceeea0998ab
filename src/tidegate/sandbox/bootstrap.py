"""Objects that every new cluster has: namespaces with service accounts, a node, a storage class."""

from __future__ import annotations

from pathlib import Path

from tidegate.documents import read_documents
from tidegate.model.k8s.objects import Json

BASE_FILE = Path(__file__).with_name("base.yaml")


def load_base_objects() -> list[dict[str, Json]]:
    """Return the objects of `base.yaml`."""
    return [document.body for document in read_documents(BASE_FILE.read_bytes(), BASE_FILE.name)]
