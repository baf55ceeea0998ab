"""Expected units of the repositories in tests/conformance, and those that the oracles found."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tidegate.documents import read_documents
from tidegate.model.k8s.objects import JsonObject

REPOS = Path(__file__).parents[1] / "conformance" / "repositories" / "cases"
RECORDED = REPOS / "recorded"
URL = "https://git.example.com/shop/platform.git"
"""How the repositories call themselves."""


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One unit. Fields that are not given are not compared.

    `of` names the entry if several create the same identity. Units that are `together` are in one
    directory that no unit applies. Those of a `circle` create each other. `twice`: two objects
    claim the identity. `unknown`: its objects are unknown, and a finding says why. `set`: the
    ApplicationSet that generates it, whose position it has.
    A source that only provides files for others is empty text.
    """

    id: str
    place: str | None = None
    parent: str | None = None
    sources: list[str] | None = None
    namespace: str | None = None
    cluster: str | None = None
    wave: int = 0
    dependsOn: list[str] = []  # noqa: N815 - as the command calls it
    of: str = ""
    together: str = ""
    circle: bool = False
    twice: bool = False
    unknown: bool = False
    set: str = ""

    @property
    def record(self) -> str:
        """The name of the file with the oracle's answer."""
        entry = self.of.split("/")[1] if "/" in self.of else self.of.removesuffix(".yaml")
        return "_".join([*self.id.split("/"), *([entry] if entry else [])]) + ".json"


class ExpectedFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding: one of these words, at one of these places."""

    says: str | list[str]
    place: str | list[str]


class Repository(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All units of one repository, and what is to be said about it."""

    units: list[Expected]
    findings: list[ExpectedFinding] = []


def shapes() -> list[str]:
    return sorted(
        path.name.removesuffix(".expected.yaml") for path in REPOS.glob("*.expected.yaml")
    )


def expected(shape: str) -> Repository:
    path = REPOS / f"{shape}.expected.yaml"
    (document,) = read_documents(path.read_bytes(), path.name)
    return msgspec.convert(document.body, Repository)


def key_file() -> str:
    """The key that opens what is encrypted in the repositories."""
    return (REPOS / "age.txt").read_text()


def identity(body: JsonObject) -> str:
    """`Kind/namespace/name` of a unit's own object."""
    metadata = body.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return f"{body.get('kind')}/{known.get('namespace')}/{known.get('name')}"
