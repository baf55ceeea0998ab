"""A Git repository with a commit, and changes on top of it that `diff` reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.support.file_trees import URL, commit, write_files
from tests.support.tidegate_runs import tidegate


class DiffedRevision(msgspec.Struct, frozen=True):
    name: str | None
    commit: str | None


class DiffFinding(msgspec.Struct, frozen=True):
    code: str
    severity: str
    message: str
    location: str | None = None
    sequence: list[str] = msgspec.field(name="story", default_factory=list)


class DiffGate(msgspec.Struct, frozen=True, rename="camel"):
    change: str
    type: str
    unit: str
    subject: str
    waiting: list[str]
    location: str | None
    base_location: str | None


class DiffMove(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    unit: str
    name: str
    before: str
    after: str
    location: str | None
    base_location: str | None


class DiffDependency(msgspec.Struct, frozen=True, rename="camel"):
    change: str
    dependent: str
    provider: str
    reason: str
    field: str
    declared: bool
    external: bool
    location: str | None
    provider_unit: str | None = None
    more: int = 0


class DiffObject(msgspec.Struct, frozen=True):
    kind: str
    namespace: str
    name: str


class DiffNeed(msgspec.Struct, frozen=True, rename="camel"):
    object: DiffObject
    needed_by: list[str]


class DiffRemoval(msgspec.Struct, frozen=True, rename="camel"):
    deletes: bool
    kept_because: str
    steps: list[list[DiffObject]]
    still_needed: list[DiffNeed]


class DiffUnit(msgspec.Struct, frozen=True, rename="camel"):
    change: str
    unit: str
    old_unit: str | None
    location: str | None
    removal: DiffRemoval | None


class DiffSteps(msgspec.Struct, frozen=True):
    before: str
    after: str


class DiffRenumbering(msgspec.Struct, frozen=True):
    unit: str
    steps: list[DiffSteps]


class DiffAffected(msgspec.Struct, frozen=True):
    cluster: str
    units: list[str]


class DiffOrder(msgspec.Struct, frozen=True, rename="camel"):
    same_order: bool
    gates: list[DiffGate]
    moved: list[DiffMove]
    renumbered: list[DiffRenumbering]
    dependencies: list[DiffDependency]
    unit_changes: list[DiffUnit]
    affected: list[DiffAffected]
    not_compared: list[str]
    root: str | None = None


class DiffDocument(msgspec.Struct, frozen=True, rename="camel"):
    """The JSON document of `diff`."""

    base: DiffedRevision
    head: DiffedRevision
    same_order: bool
    new_findings: list[DiffFinding]
    fixed_findings: list[DiffFinding]
    orders: list[DiffOrder]
    not_read: list[DiffFinding]

    @property
    def order(self) -> DiffOrder:
        (order,) = self.orders
        return order


@dataclass
class ChangedRepository:
    """A repository, and the exit code of the last `diff`."""

    root: Path
    code: int = -1

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, name: str, old: str, new: str) -> None:
        """Replace a text that the file must contain."""
        text = (self.root / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    def commit(self) -> None:
        commit(self.root)

    def diff(self, *words: str) -> DiffDocument:
        """Return the JSON document of `diff`."""
        ran = tidegate("diff", self.root, "--offline", "-o", "json", *words)
        self.code = ran.returncode
        assert ran.stdout, ran.stderr
        return msgspec.json.decode(ran.stdout, type=DiffDocument)


def changed_repository(root: Path, files: dict[str, str], *, url: str = URL) -> ChangedRepository:
    """Return a repository in which these files are committed."""
    repository = ChangedRepository(write_files(root, files, url=url))
    repository.commit()
    return repository
