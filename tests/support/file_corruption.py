"""Repositories with a mistake of a person, an editor or a disk in one file."""

from __future__ import annotations

import os
import random
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import yaml

READ = (".yaml", ".yml", ".json", ".tpl", ".txt")
ODD: tuple[object, ...] = (
    None,
    [],
    {},
    0,
    -1,
    3.5,
    True,
    "",
    " ",
    "x",
    10**30,
    "9" * 5_000,
    "a" * 70_000,
    "\x1b[31m\x07\x00",
    "🌊",
    "two\nlines",
    "../../..",
    "/etc/passwd",
    "{{ .Values.x }}",
    "${x}",
    "yes",
    "0x1F",
    "1:20",
    "~",
    [None],
    [[]],
    ["x", 1, {}],
    {"x": None},
    {"": ""},
    {"1": 1},
    float("inf"),
    float("nan"),
)
"""Values that replace others."""
CLOSERS = ("[", "{", "}", '"', "'", "\t", ": ", "- ", "&a ", "*a", "<<: *a", "!!x ", "%", "|", "? ")
OFTEN = 0.4
Spoiler: TypeAlias = Callable[[Path, random.Random], str]


class Spot(NamedTuple):
    """A place in a document: what holds it, and under which key or number."""

    holder: dict[object, object] | list[object]
    key: object
    path: str

    @property
    def value(self) -> object:
        return self.holder[self.key] if isinstance(self.holder, dict) else self.holder[self._number]

    def put(self, value: object) -> str:
        if isinstance(self.holder, dict):
            self.holder[self.key] = value
        else:
            self.holder[self._number] = value
        return f"{value!r:.40}"

    def take(self) -> object:
        holder = self.holder
        return holder.pop(self.key) if isinstance(holder, dict) else holder.pop(self._number)

    @property
    def _number(self) -> int:
        assert isinstance(self.key, int)
        return self.key


def is_text(file: Path) -> bool:
    """Whether it is a file that a reader of manifests would open; a link is none."""
    return file.suffix in READ and stat.S_ISREG(file.lstat().st_mode)


def spoil(folder: Path, dice: random.Random) -> str:
    """Corrupt one file of a directory, and return a description for the failure message."""
    files = [path for path in sorted(folder.rglob("*")) if is_text(path)]
    if not files:
        return "nothing to spoil"
    file = dice.choice(files)
    mutation = dice.choice(DEEDS)
    return f"{file.relative_to(folder)}: {mutation.__name__[1:]} {mutation(file, dice)}".rstrip()


def _truncate(file: Path, dice: random.Random) -> str:
    data = file.read_bytes()
    at = dice.randrange(len(data) + 1)
    file.write_bytes(data[:at])
    return f"at {at}"


def _empty(file: Path, _dice: random.Random) -> str:
    file.write_bytes(b"")
    return ""


def _remove(file: Path, _dice: random.Random) -> str:
    file.unlink()
    return ""


def _repeat(file: Path, _dice: random.Random) -> str:
    text = file.read_bytes()
    file.write_bytes(text + b"\n---\n" + text)
    return ""


def _tabs(file: Path, _dice: random.Random) -> str:
    file.write_bytes(file.read_bytes().replace(b"\n  ", b"\n\t", 1))
    return ""


def _crlf(file: Path, _dice: random.Random) -> str:
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    return ""


def _lone_returns(file: Path, _dice: random.Random) -> str:
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r"))
    return ""


def _mark(file: Path, dice: random.Random) -> str:
    marks = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
    mark = dice.choice(marks)
    file.write_bytes(mark + file.read_bytes())
    return repr(mark)


def _wide(file: Path, dice: random.Random) -> str:
    encoding = dice.choice(("utf-16", "utf-16-le", "utf-32"))
    file.write_bytes(file.read_bytes().decode(errors="replace").encode(encoding))
    return encoding


def _bytes(file: Path, dice: random.Random) -> str:
    data = bytearray(file.read_bytes())
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(data) + 1)
        data[at:at] = dice.choice((b"\xff", b"\x00", b"\xc3", b"\x1b", b"\x85", b"\xe2\x80\xa8"))
    file.write_bytes(bytes(data))
    return ""


def _insert(file: Path, dice: random.Random) -> str:
    text = file.read_bytes()
    at, what = dice.randrange(len(text) + 1), dice.choice(CLOSERS)
    file.write_bytes(text[:at] + what.encode() + text[at:])
    return f"{what!r} at {at}"


def _drop_line(file: Path, dice: random.Random) -> str:
    lines = file.read_bytes().splitlines(keepends=True) or [b""]
    at = dice.randrange(len(lines))
    file.write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
    return f"{at + 1}"


def _repeat_line(file: Path, dice: random.Random) -> str:
    lines = file.read_bytes().splitlines(keepends=True) or [b""]
    at = dice.randrange(len(lines))
    file.write_bytes(b"".join(lines[: at + 1] + lines[at:]))
    return f"{at + 1}"


def _indent(file: Path, dice: random.Random) -> str:
    lines = file.read_bytes().splitlines(keepends=True) or [b""]
    at = dice.randrange(len(lines))
    lines[at] = (
        lines[at][1:] if lines[at].startswith(b" ") and dice.random() < OFTEN else b" " + lines[at]
    )
    file.write_bytes(b"".join(lines))
    return f"{at + 1}"


def _loop(file: Path, dice: random.Random) -> str:
    """A link to itself, to its own directory, to nowhere, or out of the tree."""
    target = dice.choice((file.name, ".", "..", "nowhere", "/etc/hostname", "/"))
    file.unlink()
    file.symlink_to(target)
    return target


def _folder(file: Path, _dice: random.Random) -> str:
    file.unlink()
    file.mkdir()
    return ""


def _pipe(file: Path, _dice: random.Random) -> str:
    file.unlink()
    os.mkfifo(file)
    return ""


def _lock(file: Path, _dice: random.Random) -> str:
    """Make a file unreadable; root can still read it."""
    file.chmod(0)
    return ""


def _rename(file: Path, dice: random.Random) -> str:
    name = dice.choice(
        ("a b.yaml", "ü.yaml", "-x.yaml", "a:1.yaml", "a\nb.yaml", "kustomization.yml")
    )
    file.rename(file.with_name(name))
    return repr(name)


def _value(file: Path, dice: random.Random) -> str:
    """Replace a value with an unusual one."""
    return _edit(file, dice, lambda field: field.put(dice.choice(ODD)))


def _key(file: Path, dice: random.Random) -> str:
    """Take a key away, or call it something else."""

    def change(field: Spot) -> str:
        value = field.take()
        if isinstance(field.holder, dict) and dice.random() < OFTEN:
            odd = dice.choice((None, 1, True, "", "x", f"{field.key}x", "é", "a" * 300, 1.5))
            field.holder[odd] = value
            return f"-> {odd!r:.20}"
        return ""

    return _edit(file, dice, change)


def _nest(file: Path, dice: random.Random) -> str:
    """A value becomes a list of it, or is held by another one."""

    def change(field: Spot) -> str:
        value = field.value
        return field.put(dice.choice(([value], [value, value], {"x": value}, str(value))))

    return _edit(file, dice, change)


def _aliases(file: Path, dice: random.Random) -> str:
    """The same value in two places, as an alias or by a merge key."""
    text = file.read_text(errors="replace")
    lines = text.splitlines(keepends=True)
    heads = [at for at, line in enumerate(lines) if re.fullmatch(r" *[\w-]+:\n", line)]
    if not heads:
        return ""
    at = dice.choice(heads)
    lines[at] = f"{lines[at].rstrip()} &anchor\n"
    other = dice.choice(heads)
    more = dice.choice(("<<: *anchor", "again: *anchor", "<<: [*anchor, *anchor]", "*anchor : x"))
    indent = " " * (len(lines[other]) - len(lines[other].lstrip()) + 2)
    lines.insert(other + 1, f"{indent}{more}\n")
    file.write_text("".join(lines))
    return f"{at + 1} {other + 1} {more}"


def _edit(file: Path, dice: random.Random, change: Callable[[Spot], str]) -> str:
    """Change one place of a document; a file that is none is cut off."""
    try:
        documents = list(yaml.load_all(file.read_text(errors="replace"), yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError):
        return _truncate(file, dice)
    spots = list(_spots(documents))
    if not spots:
        return ""
    field = dice.choice(spots)
    result = change(field)
    file.write_text(yaml.dump_all(documents, allow_unicode=True, sort_keys=False))
    return f"{field.path}: {result}"


def _spots(node: object, path: str = "") -> Iterator[Spot]:
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            field = Spot(node, key, f"{path}/{key}")
            yield field
            yield from _spots(field.value, field.path)


DEEDS: Sequence[Spoiler] = (
    *(_value,) * 8,
    *(_key,) * 5,
    *(_nest,) * 3,
    *(_aliases, _truncate, _empty, _remove, _repeat, _tabs, _crlf, _lone_returns, _mark, _wide),
    *(_bytes, _insert, _insert, _drop_line, _repeat_line, _indent, _loop, _folder, _pipe, _lock),
    _rename,
)
"""Most mistakes are in values."""
