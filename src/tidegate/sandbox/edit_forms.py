"""What others do meanwhile, as a scenario writes it: its `edits` and its `commits`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

import msgspec

from tidegate.documents.decoding import Flaw
from tidegate.errors import FileError
from tidegate.model.commit import Commit
from tidegate.model.moment import Span
from tidegate.model.objects import Kind, Propagation, Ref
from tidegate.sandbox.faults import Edit, Match, TimedFault
from tidegate.world.calls import Verb, Write

SOMEBODY = "somebody"
"""Who does it, by the server's record of fields."""


class _Object(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """Which object is meant."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    @property
    def ref(self) -> Ref:
        return Ref(Kind.of(self.api_version, self.kind), self.namespace, self.name)


class _WrittenEdit(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="effect"
):
    """An edit as it is written; without a cluster it is done in all of them."""

    at: Span
    object: _Object
    cluster: str | None = None

    def write(self) -> Write:
        raise NotImplementedError

    @property
    def edit(self) -> TimedFault:
        return TimedFault(self.at, Edit(self.write()), Match(cluster=self.cluster))

    def flaws(self) -> Iterator[Flaw]:
        """What of it cannot be."""
        yield from ()


class _Change(_WrittenEdit, frozen=True, kw_only=True, tag="change"):
    fields: dict[str, object] = msgspec.field(name="with")

    def write(self) -> Write:
        body = msgspec.json.encode(self.fields)
        return Write(verb=Verb.PATCH, ref=self.object.ref, body=body, manager=SOMEBODY)

    def flaws(self) -> Iterator[Flaw]:
        if not self.fields:
            hint = "such as `{spec: {replicas: 3}}`"
            yield ("with",), FileError("file.value", "nothing is changed", hint=hint)


class _Delete(_WrittenEdit, frozen=True, kw_only=True, tag="delete"):
    def write(self) -> Write:
        ref = self.object.ref
        return Write(verb=Verb.DELETE, ref=ref, propagation=Propagation.BACKGROUND)


EditForm = _Change | _Delete


class CommitForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files that come into the repository, and paths that leave it."""

    at: Span
    files: str = ""
    removes: tuple[str, ...] = ()

    def commit(self, scenario: str) -> Commit:
        """Its directory is looked for beside the scenario."""
        files = posixpath.join(posixpath.dirname(scenario), self.files) if self.files else ""
        return Commit(at=self.at, files=files, removes=self.removes, where=scenario)

    def flaws(self) -> Iterator[Flaw]:
        if not self.files and not self.removes:
            hint = "write `files`, `removes`, or both"
            yield (), FileError("file.missing", "a commit changes nothing", hint=hint)
