"""Write a decrypted file as `sops` itself would write it, byte for byte.

A Secret that kustomize generates is named by a hash of its content, so a changed blank would give
it another name than Flux gives it. Where a format has comments they are kept: the encrypted text is
rewritten in place: values and comments opened, the `sops` block cut out. That is exact as long as
it is the text `sops` wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from yaml import events

from tidegate.documents.events import event_source
from tidegate.documents.numbers import format_general, format_json
from tidegate.documents.split import DocumentText, split_documents
from tidegate.errors import Location, RenderError
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.envsubst.layout import write_string
from tidegate.render.sops.formats import DEFAULT_SECTION, DOTENV_PREFIX, Format
from tidegate.render.sops.metadata import KEY
from tidegate.render.sops.tree import CipherError, decrypt_value, encrypted_type

INDENT = 4
_COMMENT = lazy_regex(r"#(ENC\[[^\n]*,type:comment\])")
_GO_ESCAPES = lazy_regex("[<>&\u2028\u2029]")
_SECTION = lazy_regex(r"\[(.*)\]")
_ENTRY = lazy_regex(r"(?P<key>[^=]*?)(?P<gap>\s*=\s*)(?P<value>.*)")


def write(
    source: bytes,
    trees: tuple[Json, ...],
    key: bytes,
    forms: tuple[Format, Format],
    where: Location,
) -> bytes:
    """The text of decrypted trees; `forms` says what was read and what is wanted."""
    match forms:
        case Format.YAML, Format.YAML:
            return rewrite_yaml(source.decode(), key).encode("utf-8", "surrogateescape")
        case Format.DOTENV, Format.DOTENV:
            return _join(_dotenv_lines(source.decode(), key))
        case Format.INI, Format.INI:
            return _join(_ini_lines(source.decode(), key))
        case _, Format.JSON if trees:
            return (_json(trees[0], "\n") + "\n").encode("utf-8", "surrogateescape")
        case _, Format.BINARY if len(trees) == 1:
            tree = trees[0]
            content = tree.get("data") if isinstance(tree, dict) else None
            if isinstance(content, str):
                return content.encode("utf-8", "surrogateescape")
        case _, Format.DOTENV if len(trees) == 1 and _is_flat(trees[0]):
            return _join(_flat_lines(trees[0]))
    problem = f"what is encrypted as {forms[0].upper()} cannot be written as {forms[1].upper()}"
    hint = "the name says how it is written; give it the suffix of the file that was encrypted"
    raise RenderError("render.sops.format", problem, location=where, hint=hint)


def _join(lines: Iterator[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _json(value: Json, line: str) -> str:
    """As Go prints JSON, indented by tabs."""
    deeper = line + "\t"
    if isinstance(value, dict) and value:
        items = [f"{_json(name, line)}: {_json(item, deeper)}" for name, item in value.items()]
        return "{" + deeper + f",{deeper}".join(items) + line + "}"
    if isinstance(value, list) and value:
        return "[" + deeper + f",{deeper}".join(_json(item, deeper) for item in value) + line + "]"
    if isinstance(value, str):
        clean = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        text = msgspec.json.encode(clean).decode()
        return _GO_ESCAPES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_json(float(value))
    return msgspec.json.encode(value).decode()


def _is_flat(tree: Json) -> bool:
    return isinstance(tree, dict) and not any(isinstance(v, dict | list) for v in tree.values())


def _flat_lines(tree: Json) -> Iterator[str]:
    for name, value in tree.items() if isinstance(tree, dict) else ():
        text = value if isinstance(value, str) else _json(value, "")
        yield f"{name}=" + text.replace("\n", "\\n")


def _dotenv_lines(text: str, key: bytes) -> Iterator[str]:
    for line in filter(None, text.split("\n")):
        if line.startswith("#"):
            yield "#" + _open_comment(line[1:], key, ":")
        elif not line.startswith(DOTENV_PREFIX):
            name, _, value = line.partition("=")
            yield f"{name}=" + _open_text(value, key, f"{name}:").replace("\n", "\\n")


def _ini_lines(text: str, key: bytes) -> Iterator[str]:
    """All lines up to the block, which stands last; one blank line stands before it."""
    section = DEFAULT_SECTION
    for line in text.removesuffix("\n").split(f"\n\n[{KEY}]\n")[0].split("\n"):
        if line.startswith((";", "#")):
            yield f"{line[0]} " + _open_comment(line[1:].strip(), key, f"{section}:").strip()
        elif found := _SECTION.fullmatch(line):
            section = found[1]
            yield line
        elif found := _ENTRY.fullmatch(line):
            path = f"{section}:{found['key']}:"
            is_hidden = bool(encrypted_type(found["value"]))
            value = _open_text(found["value"], key, path)
            yield found["key"] + found["gap"] + (_ini_quoted(value) if is_hidden else value)
        else:
            yield line


def _ini_quoted(value: str) -> str:
    if "\n" in value or "`" in value:
        return f'"""{value}"""'
    if "#" in value or ";" in value:
        return f"`{value}`"
    return f'"{value}"' if value != value.strip() else value


def _open_text(value: str, key: bytes, path: str) -> str:
    opened = decrypt_value(value, key, path) if encrypted_type(value) else value
    return opened if isinstance(opened, str) else _json(opened, "")


def _open_comment(text: str, key: bytes, path: str) -> str:
    try:
        return _open_text(text, key, path)
    except CipherError:
        # SOPS leaves a comment that does not open as it is.
        return text


class _Frame(msgspec.Struct):
    """A mapping or a list that is being read; `key` is the one whose value comes next."""

    path: tuple[str, ...]
    is_list: bool
    column: int = 0
    key: str | None = None


class _Edits(msgspec.Struct):
    key: bytes
    found: list[tuple[int, int, str]] = msgspec.field(default_factory=list)
    paths: set[tuple[str, ...]] = msgspec.field(default_factory=set)


def rewrite_yaml(text: str, key: bytes) -> str:
    """The whole file, decrypted."""
    return "---".join(_rewrite(part, key) for part in split_documents(text, ""))


def _rewrite(part: DocumentText, key: bytes) -> str:
    edits = _Edits(key)
    _walk(part, edits)
    text = part.text
    for start, end, new in sorted(edits.found, reverse=True):
        text = text[:start] + new + text[end:]
    return _COMMENT.sub(lambda found: "#" + _open_yaml_comment(found[1], edits), text)


def _walk(part: DocumentText, edits: _Edits) -> None:
    next_event = event_source(part)
    stack: list[_Frame] = []
    block = -1
    while not isinstance(event := next_event(), events.StreamEndEvent):
        if isinstance(event, events.MappingEndEvent | events.SequenceEndEvent):
            stack.pop()
        elif isinstance(event, events.MappingStartEvent | events.SequenceStartEvent):
            stack.append(_enter(event, stack, edits))
        elif isinstance(event, events.ScalarEvent) and stack:
            if block >= 0 and len(stack) == 1 and stack[0].key is None:
                edits.found.append((block, _index(event), ""))
                block = -1
            if _is_block_key(event, stack):
                block = _index(event)
            _scalar(event, stack[-1], edits, inside_block=block >= 0)
    if block >= 0:
        edits.found.append((block, len(part.text), ""))


def _is_block_key(event: events.ScalarEvent, stack: list[_Frame]) -> bool:
    return len(stack) == 1 and stack[0].key is None and event.value == KEY


def _enter(event: events.Event, stack: list[_Frame], edits: _Edits) -> _Frame:
    path = _take_path(stack[-1]) if stack else ()
    edits.paths.add(path)
    return _Frame(path, isinstance(event, events.SequenceStartEvent))


def _take_path(frame: _Frame) -> tuple[str, ...]:
    """The path of the value that comes now. Places in a list are no part of it."""
    path = frame.path if frame.key is None else (*frame.path, frame.key)
    frame.key = None
    return path


def _scalar(event: events.ScalarEvent, frame: _Frame, edits: _Edits, *, inside_block: bool) -> None:
    column = event.start_mark.column if event.start_mark else 0
    if not frame.is_list and frame.key is None:
        frame.key, frame.column = event.value, column
        return
    path = _take_path(frame)
    kind = encrypted_type(event.value)
    if not kind or inside_block:
        return
    value = decrypt_value(event.value, edits.key, ":".join(path) + ":")
    start, end = _index(event), _index(event, end=True)
    if kind == "comment":
        # SOPS writes the comments of a list as items; its `- ` goes as well.
        edits.found.append((start - 2, end, f"#{value}"))
        return
    indent = column if frame.is_list else INDENT * (frame.column // INDENT + 1)
    edits.found.append((start, end, _written(value, kind, indent)))


def _index(event: events.ScalarEvent, *, end: bool = False) -> int:
    mark = event.end_mark if end else event.start_mark
    return mark.index if mark else 0


def _written(value: Json, kind: str, indent: int) -> str:
    """A value as the YAML library of SOPS writes it."""
    if isinstance(value, str):
        lines = [value] if kind == "time" else write_string(value, indent=INDENT, modern=True)
        return "\n".join([lines[0], *(" " * indent + line if line else "" for line in lines[1:])])
    if isinstance(value, float):
        return format_general(repr(value))
    return str(value).lower()


def _open_yaml_comment(envelope: str, edits: _Edits) -> str:
    """A comment is bound to the mapping it stands in, which the text does not tell: each is tried.

    One that fits nowhere stays as it is, as with SOPS.
    """
    for path in sorted(edits.paths):
        try:
            return str(decrypt_value(envelope, edits.key, ":".join(path) + ":"))
        except CipherError:
            continue
    return envelope
