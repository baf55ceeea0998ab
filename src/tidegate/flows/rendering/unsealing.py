"""Open what SOPS has encrypted: inputs of a build before it, objects behind it, both in memory.

What no key opens gets placeholders. A seal that is broken stops nothing, as it stops Flux from
nothing, but it is told.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from tidegate.documents import Document, FieldPath, read
from tidegate.documents.dump import to_yaml
from tidegate.errors import Place, RenderError, TidegateError
from tidegate.files import StrayPathError, follow, open_file
from tidegate.model.change import MASK
from tidegate.model.objects import Json
from tidegate.model.reading import text as text_at
from tidegate.model.secret import secret_fields, texts_in, value_at
from tidegate.render.kustomize import Input, Use
from tidegate.render.sops import (
    Decrypted,
    Format,
    Keys,
    decrypt,
    decrypt_file,
    find_encrypted,
    format_of,
    is_encrypted,
    placeholders,
    refuse_broken,
    stand_in_lost,
)
from tidegate.render.sops.formats import DOTENV_PREFIX
from tidegate.render.sops.keys import WITHOUT_KEY
from tidegate.render.sops.objects import PLACEHOLDER, SIZE_LIMIT
from tidegate.render.sops.tree import encrypted_fields

NAMES = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
"""What an object is called is shown everywhere, and no place for a secret."""
LONG_ENOUGH = 4
"""A shorter secret is masked where it stands alone, not inside of other texts."""


class Unsealing(msgspec.Struct):
    """The keys for one unit, and what was found on the way."""

    keys: Keys
    has_met_inputs: bool = False
    locked: list[RenderError] = msgspec.field(default_factory=list)
    suspect: list[RenderError] = msgspec.field(default_factory=list)
    secrets: set[str] = msgspec.field(default_factory=set)

    def __repr__(self) -> str:
        return f"Unsealing({self.keys!r})"

    async def open_input(self, found: Input) -> bytes:
        """What a generator or a patch shall read in place of a file."""
        reads, writes = _formats(found)
        if self.keys.sealed or not is_encrypted(found.content, reads):
            return found.content
        self.has_met_inputs = True
        where = Place(found.path)
        try:
            opened = await decrypt_file(
                found.content, self.keys, where=where, reads=reads, writes=writes
            )
        except RenderError as error:
            if error.code not in WITHOUT_KEY:
                raise
            return self._stand_in(found, writes, error)
        try:
            refuse_broken(opened.seal, where)
        except RenderError as error:
            self.suspect.append(error)
        self.secrets |= set(_secrets(found.content, opened.content, (reads, writes)))
        return opened.content

    async def open_objects(self, documents: Iterable[Document], root: Path) -> Decrypted:
        """The objects, decrypted; `root` is where their files lie."""
        documents = tuple(documents)
        if self.keys.sealed:
            _refuse_sealed(documents)
            return stand_in_lost(documents)
        for name in sorted({one.place.name for one in find_encrypted(documents)}):
            await self._check_file(root, name)
        opened = await decrypt(documents, self.keys, offline=True)
        self.locked += opened.locked
        hidden = (
            (*fields, *fields_with(document.body, self.secrets))
            for document, fields in zip(opened.documents, opened.hidden, strict=True)
        )
        return Decrypted(opened.documents, tuple(hidden), tuple(self.locked))

    def _stand_in(self, found: Input, form: Format, error: RenderError) -> bytes:
        match found.use:
            case Use.FILE:
                return found.content  # it is opened, or stood in for, in the object it becomes
            case Use.ENV if form is Format.DOTENV:
                self.locked.append(error)
                return _without_values(found.content)
            case Use.ENV | Use.PATCH:
                self.locked.append(error)
                parts = read(found.content, found.path)
                return "---\n".join(to_yaml(placeholders(one).body) for one in parts).encode()

    async def _check_file(self, root: Path, name: str) -> None:
        """Verify the seal of the file that an object comes from, if it still is that file."""
        content = await asyncio.to_thread(_read_inside, root, name)
        if not is_encrypted(content, format_of(name)):
            return
        where = Place(name)
        try:
            refuse_broken((await decrypt_file(content, self.keys, where=where)).seal, where)
        except RenderError as error:
            if error.code == "render.sops.mac":
                self.suspect.append(error)


def _refuse_sealed(documents: Iterable[Document]) -> None:
    """Raise for Secrets that would be applied encrypted: Flux refuses these."""
    errors = [
        RenderError(
            "render.sops.unasked",
            f"Secret `{text_at(one.body, 'metadata', 'name')}` is encrypted, and its unit does not "
            "ask for decryption",
            where=one.place,
            hint="add `decryption: {provider: sops}` to the unit, with the `secretRef` of its keys",
        )
        for one in find_encrypted(documents)
        if (text_at(one.body, "apiVersion"), text_at(one.body, "kind")) == ("v1", "Secret")
        and "sops" in one.body
    ]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("encrypted", errors)


def _formats(found: Input) -> tuple[Format, Format]:
    form = format_of(found.name)
    if found.use is Use.ENV:
        return (Format.DOTENV if form is Format.BINARY else form), Format.DOTENV
    return form, form


def _without_values(content: bytes) -> bytes:
    lines = content.decode(errors="replace").splitlines()
    kept = [line for line in lines if "=" in line and not line.startswith(("#", DOTENV_PREFIX))]
    return "".join(f"{line.partition('=')[0]}={PLACEHOLDER}\n" for line in kept).encode()


def _read_inside(root: Path, name: str) -> bytes:
    try:
        with open_file(follow(root / name, root)) as file:
            return file.read(SIZE_LIMIT)
    except (OSError, StrayPathError):
        return b""


def _secrets(sealed: bytes, opened: bytes, forms: tuple[Format, Format]) -> Iterator[str]:
    """The texts that were encrypted, so that they are masked wherever a build has put them."""
    for text in _plain_secrets(sealed, opened, forms):
        yield from ways_to_write(text)


def ways_to_write(secret: str) -> Iterator[str]:
    """A secret as it is, without the break behind it, and in base64."""
    for text in dict.fromkeys((secret, secret.strip())):
        if text:
            yield text
            yield base64.b64encode(text.encode()).decode()


def secrets_of(entries: Mapping[str, bytes]) -> Iterator[str]:
    """What a Secret holds: its entries, and all that stands in those that are YAML or JSON."""
    for entry in entries.values():
        text = entry.decode("utf-8", "replace")
        yield from ways_to_write(text)
        try:
            documents = read(entry, "")
        except TidegateError:
            continue
        for value in (text for one in documents for text in texts_in(one.body)):
            yield from ways_to_write(value)


def conceal(error: TidegateError, secrets: Iterable[str]) -> TidegateError:
    """The same error without secrets in its words: a chart may fail with what it was given."""
    for one in sorted((one for one in secrets if len(one) >= LONG_ENOUGH), key=len, reverse=True):
        error.problem = error.problem.replace(one, MASK)
        error.hint = error.hint.replace(one, MASK)
    error.args = (error.problem,)
    return error


def _plain_secrets(sealed: bytes, opened: bytes, forms: tuple[Format, Format]) -> Iterator[str]:
    match forms:
        case (Format.YAML | Format.JSON, Format.YAML | Format.JSON):
            for before, now in zip(read(sealed, ""), read(opened, ""), strict=True):
                known = dict(_leaves(now.body))
                values = (known.get(path) for path in encrypted_fields(before.body))
                yield from (str(one) for one in values if not isinstance(one, bool | None))
        case (_, Format.DOTENV | Format.INI):
            lines = opened.decode(errors="replace").splitlines()
            yield from (line.partition("=")[2].strip() for line in lines)
        case _:
            yield opened.decode(errors="replace").strip()


def secrets_among(candidates: Iterable[str], documents: Iterable[Document]) -> set[str]:
    """Those of some texts that turn out to stand in a Secret."""
    wanted = {one for one in candidates if len(one) >= LONG_ENOUGH}
    if not wanted:
        return set()
    held = {
        text
        for one in documents
        for path in secret_fields(one.body)
        for text in texts_in(value_at(one.body, path))
    }
    return {
        way
        for one in wanted
        if any(way in text for text in held for way in ways_to_write(one))
        for way in ways_to_write(one)
    }


def fields_with(body: dict[str, Json], secrets: set[str]) -> Iterator[FieldPath]:
    """Where a secret stands in a body, alone or inside of another text."""
    for path, value in _leaves(body) if secrets else ():
        text = str(value)
        if path in NAMES:
            continue
        if text in secrets or any(one in text for one in secrets if len(one) >= LONG_ENOUGH):
            yield path


def _leaves(value: Json, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Json]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    elif value is not None:
        yield path, value
