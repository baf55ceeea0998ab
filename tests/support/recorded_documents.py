"""What kubectl made of YAML, as recorded in tests/data/yaml, and our reading in the same form.

Answers are JSON text with sorted keys, or `refused`. Numbers are compared by their digits.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from tidegate.documents import read_documents
from tidegate.documents.dump import to_json
from tidegate.errors import DocumentError

FOLDER = Path(__file__).parents[1] / "data" / "yaml"
REFUSED = "refused"
ARROW = " => "
HEAD = "apiVersion: test.tidegate.dev/v1\nkind: Probe\nmetadata: {name: case-%d}\n"
_HEAD_KEYS = ("apiVersion", "kind", "metadata")


class Case(msgspec.Struct, frozen=True):
    """A piece of YAML below `HEAD`, and its recorded answer."""

    title: str
    text: str
    answer: str


class Rows(msgspec.Struct, frozen=True):
    """A file of rows, and the text around each snippet and each answer."""

    file: str
    before: str
    after: str
    before_answer: str
    behind_answer: str


ROWS = (
    Rows("scalars.txt", "v: ", "\n", '{"v":', "}"),
    Rows("keys.txt", "m: {", ": 1}\n", '{"m":{', ":1}}"),
)
STRUCTURES = "structures.txt"


class Digits(str):
    """A number as it was printed."""

    __slots__ = ()


def all_cases() -> list[Case]:
    return [
        *(case for rows in ROWS for case in _read_rows(rows)),
        *(_read_block(block) for block in _blocks()[1:]),
    ]


def record(answers: list[str]) -> None:
    """Write the files again with other answers, in the order of `all_cases`."""
    left = iter(answers)
    for rows in ROWS:
        path = FOLDER / rows.file
        lines = path.read_text(encoding="utf-8").splitlines()
        new = [_with_answer(line, next(left), rows) if _is_row(line) else line for line in lines]
        path.write_text("\n".join(new) + "\n", encoding="utf-8")
    first, *blocks = _blocks()
    written = [block.rpartition("\n=> ")[0] + f"\n=> {next(left)}\n" for block in blocks]
    path = FOLDER / STRUCTURES
    path.write_text("\n## ".join([first, *written]), encoding="utf-8")


def numbered(cases: list[Case]) -> list[str]:
    """The whole text of each case, each with a name of its own."""
    return [HEAD % number + case.text for number, case in enumerate(cases)]


def our_answer(source: str) -> str:
    try:
        (document,) = read_documents(source, "case.yaml")
    except DocumentError:
        return REFUSED
    return answer_of(to_json(document.body))


def answer_of(text: str | bytes) -> str:
    """The canonical text of an object in JSON, without its head."""
    body = json.loads(text, parse_int=Digits, parse_float=Digits)
    return print_value({key: body[key] for key in body if key not in _HEAD_KEYS})


def print_value(value: object) -> str:
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}:{print_value(value[key])}" for key in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(print_value, value)) + "]"
    return json.dumps(value)


def _read_rows(rows: Rows) -> list[Case]:
    cases = []
    for line in filter(_is_row, (FOLDER / rows.file).read_text(encoding="utf-8").splitlines()):
        snippet, text = (side.strip() for side in line.rsplit(ARROW, 1))
        answer = text if text == REFUSED else rows.before_answer + text + rows.behind_answer
        cases.append(Case(snippet, rows.before + snippet + rows.after, answer))
    return cases


def _is_row(line: str) -> bool:
    return bool(line) and not line.startswith("# ")


def _with_answer(line: str, answer: str, rows: Rows) -> str:
    text = answer.removeprefix(rows.before_answer).removesuffix(rows.behind_answer)
    return line.rsplit(ARROW, 1)[0] + ARROW + text


def _blocks() -> list[str]:
    return (FOLDER / STRUCTURES).read_text(encoding="utf-8").split("\n## ")


def _read_block(block: str) -> Case:
    title, _, rest = block.partition("\n")
    text, _, raw = rest.rpartition("\n=> ")
    return Case(title, text + "\n", raw.strip())
