"""ApplicationSets: read as objects, and not yet as what they generate."""

from __future__ import annotations

from tidegate.dialect.argo.telling import Telling
from tidegate.dialect.declared import Declared
from tidegate.documents import Document
from tidegate.errors import foreign
from tidegate.model.reading import text


def read_set(document: Document, namespace: str) -> Declared:
    """No units, and a word on why."""
    telling, body = Telling(document.place), document.body
    home = text(body, "metadata", "namespace", default=namespace)
    name = foreign(text(body, "metadata", "name") or text(body, "metadata", "generateName"))
    telling.warn(
        "argo.set",
        ("spec", "generators"),
        f"what ApplicationSet `{home}/{name}` generates is not planned yet",
        "its Applications are made by a controller in the cluster",
        "point at a directory with the Applications themselves",
    )
    return Declared(findings=telling.findings)
