"""Whether the custom resources of Argo CD and Flux are what their CRDs ask for, as findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from tidegate.documents import Document, find_places, read
from tidegate.documents.document import path_text
from tidegate.errors import DocumentError, Place, foreign
from tidegate.files import read_whole
from tidegate.model.finding import Finding, Severity
from tidegate.model.reading import text
from tidegate.schema.dialects import Flaw, check_object

UNQUOTED = tuple(f'must be of type string: "{name}"' for name in ("boolean", "integer", "number"))
"""What a server says of text that YAML reads as something else."""
TextOf = Callable[[str], bytes]
"""The text of a file that a place names; an OSError where there is none."""


def check_units(
    documents: Iterable[Document], *, text_of: TextOf = read_whole
) -> tuple[Finding, ...]:
    """What a server would refuse of these objects, and what it would drop of them.

    A finding has the line of its field where the object stands in its file as it is here; what
    came out of a render has its own place.
    """
    written = cache(lambda name: _written(name, text_of))
    return tuple(
        finding
        for document in documents
        if (flaws := check_object(document.body))
        for finding in _findings(document, flaws, written)
    )


def _findings(
    document: Document, flaws: tuple[Flaw, ...], written: Callable[[str], _Written]
) -> Iterable[Finding]:
    content, there = written(document.place.name)
    if document in there:
        places = find_places(content, [(document, flaw.path) for flaw in flaws])
    else:
        places = tuple(document.place.at(path_text(flaw.path)) for flaw in flaws)
    return map(_finding, [document] * len(flaws), flaws, places)


def _finding(document: Document, flaw: Flaw, place: Place) -> Finding:
    name = foreign(text(document.body, "metadata", "name"))
    spot = f"`{foreign(path_text(flaw.path))}`" if flaw.path else "a field"
    deed = "is unknown and dropped" if flaw.dropped else f"is refused: {foreign(flaw.problem)}"
    return Finding(
        code="schema.unknown" if flaw.dropped else "schema.refused",
        severity=Severity.WARNING if flaw.dropped else Severity.ERROR,
        sentence=f"{spot} of {text(document.body, 'kind')} `{name}` {deed}",
        where=place,
        why=f"the CRD in {flaw.source} says so" if flaw.source else "",
        fix=_fix(flaw),
        about=_about(document),
    )


def _about(document: Document) -> tuple[str, ...]:
    """Whose text it is, where the object says all of its name."""
    kind, namespace, name = (
        text(document.body, *path)
        for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))
    )
    return (f"{kind}/{namespace}/{name}",) if kind and namespace and name else ()


def _fix(flaw: Flaw) -> str:
    if flaw.near:
        return f"did you mean `{flaw.near}`?"
    return "put it in quotes" if flaw.problem.endswith(UNQUOTED) else ""


_Written = tuple[bytes, tuple[Document, ...]]


def _written(name: str, text_of: TextOf) -> _Written:
    """A file's text and what stands in it; nothing where it cannot be read again."""
    try:
        content = text_of(name)
        return content, read(content, name)
    except (OSError, ValueError, DocumentError):
        return b"", ()
