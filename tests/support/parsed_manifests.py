"""Manifests of documents that are all valid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.dialect.manifests import ScopeLookup, parse_manifests
from tidegate.documents import Document
from tidegate.model.k8s.objects import FieldPath
from tidegate.model.plans.manifest import Manifests
from tidegate.model.units.unit import Unit


def parse_all_manifests(
    unit: Unit,
    documents: Iterable[Document],
    is_namespaced: ScopeLookup,
    hidden: Sequence[tuple[FieldPath, ...]] = (),
) -> Manifests:
    """Parse all documents. Raises the error of an invalid one, or an ExceptionGroup of several."""
    manifests, errors = parse_manifests(unit, documents, is_namespaced, hidden)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("several objects are invalid", errors)
    return manifests
