"""What generators of ApplicationSets find that ask a server elsewhere, as a user writes it down."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.documents.decoding import decode_one
from tidegate.files import read_users_file
from tidegate.model.objects import Json

Found: TypeAlias = tuple[dict[str, Json], ...]
GeneratorData: TypeAlias = Mapping[str, Mapping[str, Found]]
"""By the name of a set, and by that of a generator."""


class _SetForm(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """The generators of one set; what is not given is not known."""

    scm_provider: tuple[dict[str, object], ...] | None = None
    pull_request: tuple[dict[str, object], ...] | None = None
    plugin: tuple[dict[str, object], ...] | None = None
    cluster_decision_resource: tuple[dict[str, object], ...] | None = None


class _DataForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sets: dict[str, _SetForm] = {}


def read_generator_data(path: Path | None) -> GeneratorData:
    """The file as values. Raises all its mistakes."""
    if path is None:
        return {}
    form = decode_one(read_users_file(path), str(path), _DataForm, noun="file of generator data")
    encoded = msgspec.json.encode(form)
    sets: dict[str, dict[str, list[dict[str, Json]] | None]] = msgspec.json.decode(encoded)["sets"]
    return {
        name: {kind: tuple(many) for kind, many in one.items() if many is not None}
        for name, one in sets.items()
    }
