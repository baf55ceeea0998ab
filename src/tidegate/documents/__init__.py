"""YAML reader with Kubernetes semantics and source locations, and canonical writer.

    documents = read_documents(source, "shop.yaml")
    reject_duplicates(documents)
    find_location(source, documents[0], ("spec", "replicas"))

`tidegate.documents.dump` writes. The package knows no kinds, except that a List is its items.
"""

from tidegate.documents.document import Document, DuplicateKey
from tidegate.documents.reader import (
    DocumentReader,
    FileLocations,
    duplicate_errors,
    find_location,
    find_locations,
    read_documents,
    read_first_value,
    reject_duplicates,
)

__all__ = [
    "Document",
    "DocumentReader",
    "DuplicateKey",
    "FileLocations",
    "duplicate_errors",
    "find_location",
    "find_locations",
    "read_documents",
    "read_first_value",
    "reject_duplicates",
]
