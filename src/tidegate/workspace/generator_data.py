"""Results of ApplicationSet generators that query external services, from a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.documents.decoder import decode_single
from tidegate.files import read_user_file
from tidegate.model.k8s.objects import Json

GeneratorResults: TypeAlias = tuple[dict[str, Json], ...]
GeneratorData: TypeAlias = Mapping[str, Mapping[str, GeneratorResults]]
"""Results by the name of an ApplicationSet, and by that of a generator."""


class _SetSchema(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """Results of the generators of one ApplicationSet; None if they are unknown."""

    scm_provider: tuple[dict[str, object], ...] | None = None
    pull_request: tuple[dict[str, object], ...] | None = None
    plugin: tuple[dict[str, object], ...] | None = None
    cluster_decision_resource: tuple[dict[str, object], ...] | None = None


class _DataSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sets: dict[str, _SetSchema] = {}


def read_generator_data(path: Path | None) -> GeneratorData:
    """Return the results in a file; none without a file. Raises all errors of the file."""
    if path is None:
        return {}
    data = decode_single(
        read_user_file(path), str(path), _DataSchema, noun="file of generator data"
    )
    encoded = msgspec.json.encode(data)
    sets: dict[str, dict[str, list[dict[str, Json]] | None]] = msgspec.json.decode(encoded)["sets"]
    return {
        name: {kind: tuple(results) for kind, results in generators.items() if results is not None}
        for name, generators in sets.items()
    }
