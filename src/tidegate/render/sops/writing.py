"""Write a decrypted file as `sops` itself would write it, byte for byte.

A Secret that kustomize generates is named by a hash of its content, so a changed blank would give
it another name than Flux gives it. Where a format has comments they are kept: the encrypted text is
rewritten in place. That is exact as long as it is the text `sops` wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from tidegate.documents.numerals import print_json
from tidegate.errors import Place, RenderError
from tidegate.model.objects import Json
from tidegate.render.sops.cipher import CipherError, open_value, type_of
from tidegate.render.sops.formats import DEFAULT_SECTION, DOTENV_PREFIX, Format
from tidegate.render.sops.metadata import KEY
from tidegate.render.sops.yaml_text import rewrite_yaml

_GO_ESCAPES = re.compile("[<>&\u2028\u2029]")
_SECTION = re.compile(r"\[(.*)\]")
_ENTRY = re.compile(r"(?P<key>[^=]*?)(?P<gap>\s*=\s*)(?P<value>.*)")


def write(
    source: bytes, trees: tuple[Json, ...], key: bytes, forms: tuple[Format, Format], where: Place
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
    raise RenderError("render.sops.format", problem, where=where, hint=hint)


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
        return print_json(float(value))
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
            is_hidden = bool(type_of(found["value"]))
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
    opened = open_value(value, key, path) if type_of(value) else value
    return opened if isinstance(opened, str) else _json(opened, "")


def _open_comment(text: str, key: bytes, path: str) -> str:
    try:
        return _open_text(text, key, path)
    except CipherError:
        # SOPS leaves a comment that does not open as it is.
        return text
