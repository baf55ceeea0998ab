"""Sentences that tests expect, recorded in files: `--golden` writes them again.

A test asserts codes, fields and names itself. Where the sentences are the behaviour, it passes
them to the fixture `wording`, which compares them with `tests/data/wording`. So a sentence can be
changed in one place, and the diff of these files shows every sentence that changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

DIRECTORY = Path(__file__).parents[1] / "data" / "wording"
HEADING = "## "
INDENT = "    "


class RecordedWording:
    """The recorded sentences of one test: each call is one text, in the order of the calls."""

    def __init__(self, test: str, file: Path, *, hidden: dict[str, str], rewrite: bool) -> None:
        self._test = test
        self._file = file
        self._hidden = hidden
        self._rewrite = rewrite
        self._calls = 0

    def __call__(self, text: str | Iterable[str]) -> None:
        """Compare a text, or the lines of one, with what was recorded for this call."""
        self._calls += 1
        name = self._test if self._calls == 1 else f"{self._test} #{self._calls}"
        actual = text if isinstance(text, str) else "\n".join(text)
        for value, placeholder in self._hidden.items():
            actual = actual.replace(value, placeholder)
        actual = "\n".join(line.rstrip() for line in actual.rstrip().splitlines())
        if self._rewrite:
            write_texts(self._file, {**read_texts(self._file), name: actual})
        expected = read_texts(self._file).get(name)
        assert actual == expected, f"run this test with --golden to record {name} in {self._file}"


def read_texts(file: Path) -> dict[str, str]:
    """Return the recorded texts of a file by the names of their tests; none without a file."""
    recorded = "\n" + file.read_text() if file.exists() else ""
    texts = {}
    for section in recorded.split("\n" + HEADING)[1:]:
        name, *body = section.splitlines()
        texts[name] = "\n".join(line.removeprefix(INDENT) for line in body).rstrip("\n")
    return texts


def write_texts(file: Path, texts: dict[str, str]) -> None:
    """Write recorded texts in the order of the names."""
    file.parent.mkdir(parents=True, exist_ok=True)
    sections = []
    for name in sorted(texts):
        body = (f"{INDENT}{line}".rstrip() for line in texts[name].splitlines())
        sections.append("\n".join([HEADING + name, *body]))
    file.write_text("\n\n".join(sections) + "\n")
