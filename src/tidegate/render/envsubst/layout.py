"""YAML text of an object, in which Flux looks for `${…}`.

The quotes of a string in this text decide what a variable can do: in `${count}` without quotes the
value `3` becomes a number, in `'*.${domain}'` a value stays part of the string. The quotes of the
file are lost by then, so the rules here are those of the YAML library that Flux writes with.
"""

from __future__ import annotations

import re

from tidegate.documents.dump import block_lines
from tidegate.documents.scalars import resolve
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex

_NOT_PRINTED = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff\U00010000-\U0010ffff"
)
_SPECIAL = lazy_regex(f"[\t{_NOT_PRINTED}]")
_SPECIAL_EXCEPT_TAB = lazy_regex(f"[{_NOT_PRINTED}]")
_ESCAPED = lazy_regex(f'[{_NOT_PRINTED}\t\n"\\\\]')
_INDICATOR = lazy_regex(
    r"""---|\.\.\.|[#,\[\]{}&*!|>'"%@`]|[?:-](?=[ \t]|$)|.*(?::(?:[ \t]|$)|[ \t]\#)""",
    re.DOTALL,
)
_TIME_LIKE = lazy_regex(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?.*)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|<<"
)
_NAMED_ESCAPES = {
    "\0": "0",
    "\a": "a",
    "\b": "b",
    "\t": "t",
    "\n": "n",
    "\v": "v",
    "\f": "f",
    "\r": "r",
    "\x1b": "e",
    '"': '"',
    "\\": "\\",
    "\x85": "N",
    "\u2028": "L",
    "\u2029": "P",
}


def to_flux_yaml(body: Json) -> str:
    """Return the YAML text of an object. Reading it gives the same object.

    Like `AsYAML` in `resource/resource.go` of sigs.k8s.io/kustomize/api 0.21.1 and `JSONToYAML` in
    `yaml.go` of sigs.k8s.io/yaml 1.6.0.
    """
    lines = block_lines(body, write_string, lambda key: write_string(key, is_key=True)[0])
    return "\n".join(lines) + "\n"


def write_string(
    text: str, *, indent: int = 2, modern: bool = False, is_key: bool = False
) -> list[str]:
    """Return the YAML of a string: one line, or the header of a block and its lines.

    SOPS uses a `modern` version of the library: tabs are allowed in a block, and anything that
    looks like a time is quoted.

    Like `stringv` in `encode.go` of go.yaml.in/yaml 2.4.3.
    """
    has_special = (_SPECIAL_EXCEPT_TAB if modern else _SPECIAL).search(text)
    if "\n" in text:
        is_block = not is_key and not has_special and not re.search(r" (\n|\Z)", text)
        return _block_scalar(text, indent) if is_block else [_double_quoted(text)]
    is_text = isinstance(resolve(text), str) and not (modern and _TIME_LIKE.fullmatch(text))
    if not is_text or has_special or "\t" in text:
        return [_double_quoted(text)]
    if text != text.strip(" ") or _INDICATOR.match(text):
        return ["'" + text.replace("'", "''") + "'"]
    return [text]


def _double_quoted(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda match: "\\" + _escape(match[0]), text) + '"'


def _escape(character: str) -> str:
    if character in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[character]
    number = ord(character)
    for letter, digits in (("x", 2), ("u", 4)):
        if number < 16**digits:
            return f"{letter}{number:0{digits}X}"
    return f"U{number:08X}"


def _block_scalar(text: str, indent: int) -> list[str]:
    body = text.rstrip("\n")
    breaks = len(text) - len(body)
    indent_indicator = indent if text[0] in " \n" else ""
    chomping = "-" if not breaks else "" if breaks == 1 and body else "+"
    return [f"|{indent_indicator}{chomping}", *body.split("\n"), *[""] * (breaks - 1)]
