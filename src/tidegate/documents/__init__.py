"""YAML in, as Kubernetes reads it and with places; canonical text out.

    documents = read(source, "shop.yaml")
    refuse_duplicates(documents)
    find_place(source, documents[0], ("spec", "replicas"))

`tidegate.documents.dump` writes. Nothing here knows a kind, except that a List is its items.
"""

from tidegate.documents.document import Document, Duplicate, FieldPath
from tidegate.documents.reader import (
    Read,
    duplicate_errors,
    find_place,
    find_places,
    read,
    read_value,
    refuse_duplicates,
)

__all__ = [
    "Document",
    "Duplicate",
    "FieldPath",
    "Read",
    "duplicate_errors",
    "find_place",
    "find_places",
    "read",
    "read_value",
    "refuse_duplicates",
]
