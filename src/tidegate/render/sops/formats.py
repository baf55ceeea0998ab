"""The formats of SOPS as trees: YAML, JSON, dotenv, INI and binary.

`load` splits a file into its documents and its `sops` metadata.

Like `LoadEncryptedFile` in `stores/yaml/store.go`, `LoadEncryptedFile` in `stores/json/store.go`,
`LoadEncryptedFile` in `stores/dotenv/store.go` and `LoadEncryptedFile` in `stores/ini/store.go` of
SOPS 3.13.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from tidegate.documents.build import parse_document
from tidegate.documents.split import split_documents
from tidegate.errors import DocumentError, Location, RenderError
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.sops.metadata import KEY

DOTENV_PREFIX = "sops_"
DEFAULT_SECTION = "DEFAULT"
_STEP = lazy_regex(r"__(map|list)_")


class Format(StrEnum):
    """Format of a file; the values are those of the `sops` program."""

    YAML = "yaml"
    JSON = "json"
    DOTENV = "dotenv"
    INI = "ini"
    BINARY = "binary"


_SUFFIXES = {
    ".yaml": Format.YAML,
    ".yml": Format.YAML,
    ".json": Format.JSON,
    ".dockerconfigjson": Format.JSON,
    ".env": Format.DOTENV,
    ".ini": Format.INI,
}
_MAC_MARKERS = {
    Format.YAML: b"mac: ENC[",
    Format.JSON: b'"mac": "ENC[',
    Format.BINARY: b'"mac": "ENC[',
    Format.DOTENV: b"sops_mac=ENC[",
    Format.INI: b"[sops]",
}


class EncryptedFile(msgspec.Struct, frozen=True):
    """The documents of an encrypted file, and its metadata."""

    trees: tuple[Json, ...]
    """The documents without the `sops` metadata."""
    metadata: Json
    """The `sops` metadata."""

    def __repr__(self) -> str:
        return "EncryptedFile()"


def format_of(name: str) -> Format:
    """Return the format of a file by its name, or by the key of a generator.

    Like `FormatForPath` in `cmd/sops/formats/formats.go` of SOPS 3.13.2.
    """
    return next(
        (form for suffix, form in _SUFFIXES.items() if name.endswith(suffix)), Format.BINARY
    )


def is_encrypted(source: bytes, form: Format) -> bool:
    """Return whether Flux considers a file encrypted: Flux searches only for the MAC.

    Like `sopsDecryptFile` in `internal/decryptor/decryptor.go` of kustomize-controller 1.9.6.
    """
    return _MAC_MARKERS[form] in source


def detect_format(source: bytes, name: str) -> Format | None:
    """Return the format of an encrypted value in a Secret; None if it is plain.

    `name` is its key in the Secret.

    Like `DecryptResource` in `internal/decryptor/decryptor.go` of kustomize-controller 1.9.6.
    """
    forms = [form for form in Format if is_encrypted(source, form)]
    named_format = format_of(name)
    return named_format if named_format in forms else next(iter(forms), None)


def load(source: bytes, form: Format, location: Location) -> EncryptedFile:
    """Read an encrypted file.

    Raises RenderError if it does not have the format.
    """
    try:
        match form:
            case Format.YAML | Format.JSON | Format.BINARY:
                trees = tuple(_values(source, location))
                first = trees[0] if trees else None
                return EncryptedFile(trees, first.get(KEY) if isinstance(first, dict) else None)
            case Format.DOTENV:
                return _load_dotenv(source.decode())
            case Format.INI:
                return _load_ini(source.decode())
    except (DocumentError, ValueError):
        problem = f"the file name says {form.upper()}, but the content is not {form.upper()}"
        raise RenderError("render.sops.format", problem, location=location) from None


def _values(source: bytes, location: Location) -> Iterator[Json]:
    for part in split_documents(source, location.name):
        parsed = parse_document(part)
        if parsed is not None:
            yield parsed.value


def _load_dotenv(text: str) -> EncryptedFile:
    tree: dict[str, Json] = {}
    metadata: dict[str, str] = {}
    for line in filter(None, text.split("\n")):
        name, equals, value = line.partition("=")
        if line.startswith("#"):
            continue
        if not equals:
            raise ValueError
        value = value.replace("\\n", "\n")
        if name.startswith(DOTENV_PREFIX):
            metadata[name.removeprefix(DOTENV_PREFIX)] = value
        else:
            tree[name] = value
    return EncryptedFile((tree,), _unflatten(metadata))


def _load_ini(text: str) -> EncryptedFile:
    sections: dict[str, Json] = {}
    metadata: dict[str, str] = {}
    for section, key, value in ini_entries(text):
        if section == KEY:
            metadata[key] = value.replace("\\n", "\n")
        else:
            entries = sections.setdefault(section, {})
            if isinstance(entries, dict):
                entries[key] = value
    return EncryptedFile((sections,), _unflatten(metadata))


def ini_entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of each line that has them."""
    section = DEFAULT_SECTION
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped.startswith("[") and stripped.endswith("]"):
            section = stripped[1:-1]
            continue
        key, equals, value = stripped.partition("=")
        if not equals:
            raise ValueError
        yield section, key.strip(), _unquote(value.strip())


def _unquote(value: str) -> str:
    for quote in ('"""', "`", '"', "'"):
        if value.startswith(quote) and value.endswith(quote) and len(value) >= 2 * len(quote):
            return value[len(quote) : -len(quote)]
    return value


def _unflatten(flat: dict[str, str]) -> Json:
    """Return the tree of flattened keys such as `age__list_0__map_enc`.

    Like `unflattenTreeBranch` in `stores/flatten.go` of SOPS 3.13.2.
    """
    tree: dict[str, Json] = {}
    for name in sorted(flat):
        steps = _STEP.split(name)
        keys = [steps[0], *steps[2::2]]
        kinds = [*steps[1::2], ""]
        node = tree
        for key, kind in zip(keys, kinds, strict=True):
            if not kind:
                node[key] = flat[name]
                break
            inner = node.setdefault(key, {})
            node = inner if isinstance(inner, dict) else {}
    return {key: _as_list(value) for key, value in tree.items()}


def _as_list(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    items = {key: _as_list(item) for key, item in value.items()}
    if items and all(key.isdecimal() for key in items):
        return [items[key] for key in sorted(items, key=int)]
    return dict(items)
