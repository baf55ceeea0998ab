"""Format of `edits` and `commits` in a scenario: changes by others during a simulation."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

import msgspec

from tidegate.documents.decoder import FileProblem
from tidegate.errors import FileError
from tidegate.model.k8s.objects import Kind, Propagation, Ref
from tidegate.model.simulation.commit import Commit
from tidegate.model.times import Duration
from tidegate.sandbox.faults import Edit, FaultSelector, TimedFault
from tidegate.world.requests import Verb, Write

EDIT_MANAGER = "manual-edit"
"""The field manager of edits."""


class _ObjectReference(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """The object of an edit."""

    api_version: str
    """The API version of the object."""
    kind: str
    """The kind of the object."""
    name: str
    """The name of the object."""
    namespace: str = ""
    """The namespace; empty for a cluster-scoped object."""

    @property
    def ref(self) -> Ref:
        return Ref(Kind.of(self.api_version, self.kind), self.namespace, self.name)


class _EditSpecBase(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="effect"
):
    """An edit in a scenario; without a cluster it applies to all of them."""

    at: Duration
    """The time of the edit."""
    object: _ObjectReference
    """The edited object."""
    cluster: str | None = None
    """The cluster; None for all."""

    def to_write(self) -> Write:
        """Return the write that performs the edit."""
        raise NotImplementedError

    @property
    def edit(self) -> TimedFault:
        return TimedFault(self.at, Edit(self.to_write()), FaultSelector(cluster=self.cluster))

    def find_problems(self) -> Iterator[FileProblem]:
        """Yield problems that types cannot express."""
        yield from ()


class _ChangeEdit(_EditSpecBase, frozen=True, kw_only=True, tag="change"):
    """An edit that patches an object."""

    fields: dict[str, object] = msgspec.field(name="with")
    """The merge patch."""

    def to_write(self) -> Write:
        body = msgspec.json.encode(self.fields)
        return Write(verb=Verb.PATCH, ref=self.object.ref, body=body, manager=EDIT_MANAGER)

    def find_problems(self) -> Iterator[FileProblem]:
        if not self.fields:
            hint = "such as `{spec: {replicas: 3}}`"
            yield ("with",), FileError("file.value", "nothing is changed", hint=hint)


class _DeleteEdit(_EditSpecBase, frozen=True, kw_only=True, tag="delete"):
    """An edit that deletes an object."""

    def to_write(self) -> Write:
        ref = self.object.ref
        return Write(verb=Verb.DELETE, ref=ref, propagation=Propagation.BACKGROUND)


EditSpec = _ChangeEdit | _DeleteEdit


class CommitSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A commit in a scenario: files to copy into the repository, and paths to remove."""

    at: Duration
    """The time of the commit."""
    files: str = ""
    """The directory with the files; empty for none."""
    removes: tuple[str, ...] = ()
    """The paths to remove."""

    def to_commit(self, scenario: str) -> Commit:
        """Return the commit; its directory is relative to the scenario file."""
        files = posixpath.join(posixpath.dirname(scenario), self.files) if self.files else ""
        return Commit(
            at=self.at, files_directory=files, removed_paths=self.removes, scenario_file=scenario
        )

    def find_problems(self) -> Iterator[FileProblem]:
        """Yield problems that types cannot express."""
        if not self.files and not self.removes:
            hint = "write `files`, `removes`, or both"
            yield (), FileError("file.missing", "a commit changes nothing", hint=hint)
