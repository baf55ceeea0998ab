"""The pages of rules as repositories: a bad one with marked lines, and a good one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.tidegate_runs import ROOT

FOLDER = ROOT / "docs" / "rules"
PAGES = sorted(FOLDER.glob("ORD*.md"))
_FILE = re.compile(r"^`([^`\n]+)`\n\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class RulePage:
    """What a page says of its rule, and the files of its two examples."""

    code: str
    text: str

    @classmethod
    def read(cls, path: Path) -> RulePage:
        return cls(path.stem, path.read_text())

    @property
    def bad(self) -> dict[str, str]:
        return self._files("Bad")

    @property
    def good(self) -> dict[str, str]:
        return self._files("Good")

    def _files(self, head: str) -> dict[str, str]:
        section = self.text.split(f"## {head}\n", 1)[1].split("\n## ", 1)[0]
        return dict(_FILE.findall(section))

    @property
    def marked(self) -> set[tuple[str, int]]:
        """The files and lines of the bad example at which the rule speaks."""
        return {
            (name, number)
            for name, text in self.bad.items()
            for number, line in enumerate(text.splitlines(), 1)
            if line.endswith(f"# {self.code}")
        }


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
