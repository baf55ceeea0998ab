"""Text of a decrypted file, byte for byte as `sops` writes it.

The name of a Secret that kustomize generates has a hash of its content, so a changed space would
give it another name than in Flux. In formats with comments the encrypted text is edited in place:
values and comments are decrypted, the `sops` block is removed. That is exact for text that `sops`
wrote.
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
    location: Location,
) -> bytes:
    """Return the text of decrypted trees; `forms` are the input and the output format."""
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
        case _, Format.DOTENV if len(trees) == 1 and _has_no_nesting(trees[0]):
            return _join(_flat_lines(trees[0]))
    problem = f"a file encrypted as {forms[0].upper()} cannot be decrypted to {forms[1].upper()}"
    hint = "use the suffix of the file that was encrypted"
    raise RenderError("render.sops.format", problem, location=location, hint=hint)


def _join(lines: Iterator[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _json(value: Json, newline: str) -> str:
    """Return JSON as Go prints it, indented by tabs.

    Like `EmitPlainFile` in `stores/json/store.go` of SOPS 3.13.2.
    """
    deeper_newline = newline + "\t"
    if isinstance(value, dict) and value:
        items = [
            f"{_json(name, newline)}: {_json(item, deeper_newline)}" for name, item in value.items()
        ]
        return "{" + deeper_newline + f",{deeper_newline}".join(items) + newline + "}"
    if isinstance(value, list) and value:
        return (
            "["
            + deeper_newline
            + f",{deeper_newline}".join(_json(item, deeper_newline) for item in value)
            + newline
            + "]"
        )
    if isinstance(value, str):
        clean = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        text = msgspec.json.encode(clean).decode()
        return _GO_ESCAPES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_json(float(value))
    return msgspec.json.encode(value).decode()


def _has_no_nesting(tree: Json) -> bool:
    return isinstance(tree, dict) and not any(isinstance(v, dict | list) for v in tree.values())


def _flat_lines(tree: Json) -> Iterator[str]:
    for name, value in tree.items() if isinstance(tree, dict) else ():
        text = value if isinstance(value, str) else _json(value, "")
        yield f"{name}=" + text.replace("\n", "\\n")


def _dotenv_lines(text: str, key: bytes) -> Iterator[str]:
    for line in filter(None, text.split("\n")):
        if line.startswith("#"):
            yield "#" + _decrypt_comment(line[1:], key, ":")
        elif not line.startswith(DOTENV_PREFIX):
            name, _, value = line.partition("=")
            yield f"{name}=" + _decrypt_text(value, key, f"{name}:").replace("\n", "\\n")


def _ini_lines(text: str, key: bytes) -> Iterator[str]:
    """Yield all lines up to the `sops` block, which is the last section after a blank line."""
    section = DEFAULT_SECTION
    for line in text.removesuffix("\n").split(f"\n\n[{KEY}]\n")[0].split("\n"):
        if line.startswith((";", "#")):
            yield f"{line[0]} " + _decrypt_comment(line[1:].strip(), key, f"{section}:").strip()
        elif match := _SECTION.fullmatch(line):
            section = match[1]
            yield line
        elif match := _ENTRY.fullmatch(line):
            path = f"{section}:{match['key']}:"
            is_encrypted = bool(encrypted_type(match["value"]))
            value = _decrypt_text(match["value"], key, path)
            yield match["key"] + match["gap"] + (_quote_ini(value) if is_encrypted else value)
        else:
            yield line


def _quote_ini(value: str) -> str:
    if "\n" in value or "`" in value:
        return f'"""{value}"""'
    if "#" in value or ";" in value:
        return f"`{value}`"
    return f'"{value}"' if value != value.strip() else value


def _decrypt_text(value: str, key: bytes, path: str) -> str:
    decrypted = decrypt_value(value, key, path) if encrypted_type(value) else value
    return decrypted if isinstance(decrypted, str) else _json(decrypted, "")


def _decrypt_comment(text: str, key: bytes, path: str) -> str:
    try:
        return _decrypt_text(text, key, path)
    except CipherError:
        # SOPS keeps a comment that cannot be decrypted.
        return text


class _Frame(msgspec.Struct):
    """A mapping or a list that is being read."""

    path: tuple[str, ...]
    """The path of the mapping or list."""
    is_list: bool
    """Whether it is a list."""
    column: int = 0
    """The column of its keys or items."""
    key: str | None = None
    """Key of the next value."""


class _Edits(msgspec.Struct):
    """Edits of a text, and the paths of its mappings."""

    key: bytes
    """The data key."""
    replacements: list[tuple[int, int, str]] = msgspec.field(default_factory=list)
    """Start, end and new text of each edit."""
    paths: set[tuple[str, ...]] = msgspec.field(default_factory=set)
    """The paths of the mappings."""


def rewrite_yaml(text: str, key: bytes) -> str:
    """Return a YAML file, decrypted in place."""
    return "---".join(_rewrite(part, key) for part in split_documents(text, ""))


def _rewrite(part: DocumentText, key: bytes) -> str:
    edits = _Edits(key)
    _walk(part, edits)
    text = part.text
    for start, end, new in sorted(edits.replacements, reverse=True):
        text = text[:start] + new + text[end:]
    return _COMMENT.sub(lambda match: "#" + _decrypt_yaml_comment(match[1], edits), text)


def _walk(part: DocumentText, edits: _Edits) -> None:
    next_event = event_source(part)
    stack: list[_Frame] = []
    block_start = -1
    while not isinstance(event := next_event(), events.StreamEndEvent):
        if isinstance(event, events.MappingEndEvent | events.SequenceEndEvent):
            stack.pop()
        elif isinstance(event, events.MappingStartEvent | events.SequenceStartEvent):
            stack.append(_enter(event, stack, edits))
        elif isinstance(event, events.ScalarEvent) and stack:
            if block_start >= 0 and len(stack) == 1 and stack[0].key is None:
                edits.replacements.append((block_start, _index(event), ""))
                block_start = -1
            if _is_block_key(event, stack):
                block_start = _index(event)
            _scalar(event, stack[-1], edits, inside_block=block_start >= 0)
    if block_start >= 0:
        edits.replacements.append((block_start, len(part.text), ""))


def _is_block_key(event: events.ScalarEvent, stack: list[_Frame]) -> bool:
    return len(stack) == 1 and stack[0].key is None and event.value == KEY


def _enter(event: events.Event, stack: list[_Frame], edits: _Edits) -> _Frame:
    path = _take_path(stack[-1]) if stack else ()
    edits.paths.add(path)
    return _Frame(path, isinstance(event, events.SequenceStartEvent))


def _take_path(frame: _Frame) -> tuple[str, ...]:
    """Return the path of the current value, without list indexes."""
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
        # SOPS writes the comments of a list as items; the `- ` is removed as well.
        edits.replacements.append((start - 2, end, f"#{value}"))
        return
    indent = column if frame.is_list else INDENT * (frame.column // INDENT + 1)
    edits.replacements.append((start, end, _yaml_value(value, kind, indent)))


def _index(event: events.ScalarEvent, *, end: bool = False) -> int:
    mark = event.end_mark if end else event.start_mark
    return mark.index if mark else 0


def _yaml_value(value: Json, kind: str, indent: int) -> str:
    """Return a value as the YAML library of SOPS writes it.

    Like `EmitPlainFile` in `stores/yaml/store.go` of SOPS 3.13.2.
    """
    if isinstance(value, str):
        lines = [value] if kind == "time" else write_string(value, indent=INDENT, modern=True)
        return "\n".join([lines[0], *(" " * indent + line if line else "" for line in lines[1:])])
    if isinstance(value, float):
        return format_general(repr(value))
    return str(value).lower()


def _decrypt_yaml_comment(envelope: str, edits: _Edits) -> str:
    """Decrypt a comment. It is bound to an unknown mapping, so each path is tried.

    If none fits, the comment stays as it is, as in SOPS.
    """
    for path in sorted(edits.paths):
        try:
            return str(decrypt_value(envelope, edits.key, ":".join(path) + ":"))
        except CipherError:
            continue
    return envelope
