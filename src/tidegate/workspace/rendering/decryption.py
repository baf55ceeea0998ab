"""Decryption of SOPS files: inputs of a build before it, objects after it, both in memory.

Placeholders replace what no key decrypts. A wrong MAC stops nothing, as in Flux, but is reported.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import ascii_letters, digits

import msgspec

from tidegate.documents import Document, read_documents
from tidegate.documents.dump import to_yaml
from tidegate.errors import Location, RenderError, TidegateError
from tidegate.files import PathEscapeError, open_file, resolve_within
from tidegate.model.k8s.json_fields import get_text as text_at
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.k8s.secret import leaf_texts, secret_field_paths, value_at_path
from tidegate.model.plans.change import MASK
from tidegate.render.kustomize import DecryptableFile, FileUse
from tidegate.render.sops import (
    DecryptedDocuments,
    Format,
    Keys,
    decrypt,
    decrypt_file,
    find_encrypted,
    format_of,
    is_encrypted,
    replace_undecryptable,
    replace_with_placeholders,
    require_intact_mac,
)
from tidegate.render.sops.formats import DOTENV_PREFIX
from tidegate.render.sops.keys import WITHOUT_KEY
from tidegate.render.sops.objects import PLACEHOLDER, SIZE_LIMIT
from tidegate.render.sops.tree import encrypted_fields

NAME_FIELDS = frozenset(
    {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
)
"""Fields that name an object: they are shown everywhere, and never secret."""
MIN_SECRET_LENGTH = 4
"""A shorter secret is masked if it is the entire value, but not inside other strings."""


class Decryption(msgspec.Struct):
    """Decryption of one unit: its keys, and what was found."""

    keys: Keys
    has_encrypted_inputs: bool = False
    """Whether an input of the build was encrypted."""
    undecrypted: list[RenderError] = msgspec.field(default_factory=list)
    """Errors of what no key decrypts."""
    mac_errors: list[RenderError] = msgspec.field(default_factory=list)
    """Errors of files with a wrong MAC."""
    secrets: set[str] = msgspec.field(default_factory=set)
    """Decrypted strings, which must be masked."""

    def __repr__(self) -> str:
        return f"Unsealing({self.keys!r})"

    async def decrypt_input(self, build_input: DecryptableFile) -> bytes:
        """Return what a generator or a patch reads instead of an encrypted file."""
        reads, writes = _formats(build_input)
        if self.keys.is_disabled or not is_encrypted(build_input.content, reads):
            return build_input.content
        self.has_encrypted_inputs = True
        location = Location(build_input.path)
        try:
            decrypted = await decrypt_file(
                build_input.content,
                self.keys,
                location=location,
                input_format=reads,
                output_format=writes,
            )
        except RenderError as error:
            if error.code not in WITHOUT_KEY:
                raise
            return self._placeholder_input(build_input, writes, error)
        try:
            require_intact_mac(decrypted.mac_status, location)
        except RenderError as error:
            self.mac_errors.append(error)
        self.secrets |= set(
            _decrypted_texts(build_input.content, decrypted.content, (reads, writes))
        )
        return decrypted.content

    async def decrypt_objects(
        self, documents: Iterable[Document], root: Path
    ) -> DecryptedDocuments:
        """Return the objects, decrypted. `root`: the directory of their files."""
        documents = tuple(documents)
        if self.keys.is_disabled:
            _require_decryption(documents)
            return replace_undecryptable(documents)
        for name in sorted({document.location.name for document in find_encrypted(documents)}):
            await self._check_mac(root, name)
        decrypted = await decrypt(documents, self.keys, offline=True)
        self.undecrypted += decrypted.errors
        masked_fields = (
            (*fields, *find_secret_fields(document.body, self.secrets))
            for document, fields in zip(decrypted.documents, decrypted.secret_fields, strict=True)
        )
        return DecryptedDocuments(
            decrypted.documents, tuple(masked_fields), tuple(self.undecrypted)
        )

    def _placeholder_input(
        self, build_input: DecryptableFile, output_format: Format, error: RenderError
    ) -> bytes:
        match build_input.use:
            case FileUse.FILE:
                return build_input.content  # decrypted or replaced later, in the object
            case FileUse.ENV if output_format is Format.DOTENV:
                self.undecrypted.append(error)
                return _with_placeholders(build_input.content)
            case FileUse.ENV | FileUse.PATCH:
                self.undecrypted.append(error)
                documents = read_documents(build_input.content, build_input.path)
                return "---\n".join(
                    to_yaml(replace_with_placeholders(document).body) for document in documents
                ).encode()

    async def _check_mac(self, root: Path, name: str) -> None:
        """Check the MAC of the file of an object, if it still is the encrypted file."""
        content = await asyncio.to_thread(_read_file, root, name)
        if not is_encrypted(content, format_of(name)):
            return
        location = Location(name)
        try:
            require_intact_mac(
                (await decrypt_file(content, self.keys, location=location)).mac_status, location
            )
        except RenderError as error:
            if error.code == "render.sops.mac":
                self.mac_errors.append(error)


def _require_decryption(documents: Iterable[Document]) -> None:
    """Raise for Secrets that would be applied encrypted: Flux rejects these."""
    errors = [
        RenderError(
            "render.sops.not-requested",
            f"Secret `{text_at(document.body, 'metadata', 'name')}` is encrypted, but its unit does"
            " not enable decryption",
            location=document.location,
            hint="add `decryption: {provider: sops}` to the unit, with a `secretRef` to its keys",
        )
        for document in find_encrypted(documents)
        if (text_at(document.body, "apiVersion"), text_at(document.body, "kind"))
        == ("v1", "Secret")
        and "sops" in document.body
    ]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("encrypted", errors)


def _formats(build_input: DecryptableFile) -> tuple[Format, Format]:
    file_format = format_of(build_input.name)
    if build_input.use is FileUse.ENV:
        return (Format.DOTENV if file_format is Format.BINARY else file_format), Format.DOTENV
    return file_format, file_format


def _with_placeholders(content: bytes) -> bytes:
    lines = content.decode(errors="replace").splitlines()
    assignments = [
        line for line in lines if "=" in line and not line.startswith(("#", DOTENV_PREFIX))
    ]
    return "".join(f"{line.partition('=')[0]}={PLACEHOLDER}\n" for line in assignments).encode()


def _read_file(root: Path, name: str) -> bytes:
    try:
        with open_file(resolve_within(root / name, root)) as file:
            return file.read(SIZE_LIMIT)
    except (OSError, PathEscapeError):
        return b""


def _decrypted_texts(
    encrypted: bytes, decrypted: bytes, formats: tuple[Format, Format]
) -> Iterator[str]:
    """Yield the decrypted strings, so that they are masked wherever a build puts them."""
    for text in _plain_texts(encrypted, decrypted, formats):
        yield from secret_variants(text)


def secret_variants(secret: str) -> Iterator[str]:
    """Yield a secret as it is, without whitespace around it, and both in base64."""
    for text in dict.fromkeys((secret, secret.strip())):
        if text:
            yield text
            yield base64.b64encode(text.encode()).decode()


def secret_texts(entries: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the entries of a Secret, and all strings in those that are YAML or JSON."""
    for entry in entries.values():
        text = entry.decode("utf-8", "replace")
        yield from secret_variants(text)
        try:
            documents = read_documents(entry, "")
        except TidegateError:
            continue
        for value in (text for document in documents for text in leaf_texts(document.body)):
            yield from secret_variants(value)


def redact_error(error: TidegateError, secrets: Iterable[str]) -> TidegateError:
    """Return the error without secrets in its text: a chart may fail with its values."""
    for secret in sorted(
        (secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH), key=len, reverse=True
    ):
        error.problem = error.problem.replace(secret, MASK)
        error.hint = error.hint.replace(secret, MASK)
    error.args = (error.problem,)
    return error


def _plain_texts(
    encrypted: bytes, decrypted: bytes, formats: tuple[Format, Format]
) -> Iterator[str]:
    match formats:
        case (Format.YAML | Format.JSON, Format.YAML | Format.JSON):
            for encrypted_document, decrypted_document in zip(
                read_documents(encrypted, ""), read_documents(decrypted, ""), strict=True
            ):
                leaves = dict(_leaves(decrypted_document.body))
                values = (leaves.get(path) for path in encrypted_fields(encrypted_document.body))
                yield from (str(value) for value in values if not isinstance(value, bool | None))
        case (_, Format.DOTENV | Format.INI):
            lines = decrypted.decode(errors="replace").splitlines()
            yield from (line.partition("=")[2].strip() for line in lines)
        case _:
            yield decrypted.decode(errors="replace").strip()


def find_used_secrets(candidates: Iterable[str], documents: Iterable[Document]) -> set[str]:
    """Return the strings that are part of a Secret, in all variants."""
    texts = {candidate for candidate in candidates if len(candidate) >= MIN_SECRET_LENGTH}
    if not texts:
        return set()
    secret_values = {
        text
        for document in documents
        for path in secret_field_paths(document.body)
        for text in leaf_texts(value_at_path(document.body, path))
    }
    return {
        variant
        for candidate in texts
        if any(variant in text for text in secret_values for variant in secret_variants(candidate))
        for variant in secret_variants(candidate)
    }


ALTERED = str.maketrans(
    ascii_letters + digits, ascii_letters[1:26] + "a" + ascii_letters[27:] + "A" + digits[1:] + "0"
)
"""The next letter or digit of each."""


def find_secret_fields(body: dict[str, Json], secrets: set[str]) -> Iterator[FieldPath]:
    """Yield the fields of a body that contain a secret, alone or inside another text."""
    for path, value in _leaves(body) if secrets else ():
        text = str(value)
        if path in NAME_FIELDS:
            continue
        if text in secrets or any(
            secret in text for secret in secrets if len(secret) >= MIN_SECRET_LENGTH
        ):
            yield path


def find_changed_fields(body: dict[str, Json], altered: dict[str, Json]) -> Iterator[FieldPath]:
    """Yield the fields of a body that are different, or absent, in an altered one."""
    other = dict(_leaves(altered))
    for path, value in _leaves(body):
        if path not in NAME_FIELDS and other.get(path) != value:
            yield path


def alter_text(text: str) -> str:
    """Return a text of the same form in which every letter and digit is another one."""
    return text.translate(ALTERED)


def _leaves(value: Json, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Json]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    elif value is not None:
        yield path, value
