"""What a build may read, gathered before it starts, to be laid out for it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.errors import Place, RenderError, foreign
from tidegate.render.kustomize.request import LARGEST_TREE
from tidegate.render.kustomize.tree import Tree, TreeSpot, Where

MOST_FILES = 20_000


@dataclass(slots=True)
class Copy:
    """Files and links by their path in the copy; they are kept in memory until they are needed."""

    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    links: dict[str, str] = field(default_factory=dict)
    room: int = LARGEST_TREE

    def put(self, path: str, content: bytes) -> None:
        self.files[path] = content

    def link(self, tree: Tree, spot: TreeSpot) -> None:
        """Keep the links on the way to a spot, so that kustomize goes the same way."""
        for link, target in spot.links.items():
            self.links[tree.copied(link)] = tree.copied(target)

    def take(self, tree: Tree, path: str, where: Where) -> bytes:
        """A file of a tree, read once."""
        copied = tree.copied(path)
        if copied not in self.files:
            content = tree.read(path, where=where, limit=self.room)
            self.spend(len(content), where)
            self.files[copied] = content
        return self.files[copied]

    def spend(self, amount: int, where: Where) -> None:
        """Count bytes against what one build may read."""
        self.room -= amount
        if self.room < 0 or len(self.files) >= MOST_FILES:
            problem = "the overlay reaches more files, or more bytes, than a build may read"
            hint = "keep large files out of generators and charts"
            raise RenderError("render.kustomize.size", problem, where=where(), hint=hint)

    def write(self, scratch: Path) -> None:
        """Lay everything out below a directory that is ours alone."""
        for path, content in self.files.items():
            try:
                (scratch / path).parent.mkdir(parents=True, exist_ok=True)
                (scratch / path).write_bytes(content)
            except OSError as error:
                problem = f"the file cannot be copied: {foreign(error.strerror or '')}"
                where = Place(path.partition("/")[2])
                raise RenderError("render.kustomize.file", problem, where=where) from None
        for link, aim in self.links.items():
            target = scratch / link
            if not target.is_symlink() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(os.path.relpath(scratch / aim, target.parent))

    def digest(self, *more: str) -> str:
        """Equal for builds that read the same bytes under the same names."""
        parts = [*more, *(f"{link}>{aim}" for link, aim in sorted(self.links.items()))]
        for path, content in sorted(self.files.items()):
            parts += (path, hashlib.sha256(content).hexdigest())
        return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()
