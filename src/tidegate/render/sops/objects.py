"""Decrypt in memory, as Flux does: objects after the build, and whole files before it.

An object is encrypted if it has a `sops` block with a seal. In a Secret, single entries of `data`
may be encrypted files of their own. The seal of an object is not looked at: it covers the source
file, and a build has changed that.

Flux does not verify the seal of a file either. We do, and say what we found: an edited file opens
all the same, unless a single value in it was changed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.documents import Document, read_documents
from tidegate.documents.document import format_path
from tidegate.documents.dump import to_json
from tidegate.errors import Location, RenderError
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.render.sops.formats import Format, detect_format, format_of, load
from tidegate.render.sops.keys import WITHOUT_KEY, Keys, decrypt_data_key
from tidegate.render.sops.metadata import KEY, read_metadata
from tidegate.render.sops.program import run_sops
from tidegate.render.sops.serialize import write
from tidegate.render.sops.tree import (
    CipherError,
    MacStatus,
    check_mac,
    decrypt_trees,
    encrypted_fields,
    encrypted_type,
    replace_encrypted,
)

SIZE_LIMIT = 5 * 1024 * 1024
"""Bytes of one encrypted file; Flux takes no more."""
OPT_OUT = "kustomize.toolkit.fluxcd.io/decrypt"
PLACEHOLDER = "tidegate-placeholder"
"""What stands for a string. It can also be a name or a label."""
_BY_TYPE: dict[str, Json] = {"int": 0, "float": 0.5, "bool": False, "time": "1970-01-01T00:00:00Z"}
_ENCODED = base64.b64encode(PLACEHOLDER.encode()).decode()


class DecryptedDocuments(msgspec.Struct, frozen=True):
    """The documents in their order, the secret fields of each, and what could not be opened.

    `hidden` names the fields that were encrypted, so that others can mask them. For each error in
    `locked` the document at its place holds placeholders.
    """

    documents: tuple[Document, ...]
    hidden: tuple[tuple[FieldPath, ...], ...]
    locked: tuple[RenderError, ...] = ()


def find_encrypted(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Those that must be decrypted before they can be applied."""
    return tuple(
        document
        for document in documents
        if not opts_out(document) and (_has_block(document) or any(_inner_files(document)))
    )


def replace_undecryptable(documents: Iterable[Document]) -> DecryptedDocuments:
    """Documents that nobody decrypts, with placeholders where nobody could."""
    documents = tuple(documents)
    lost = [find_missing_metadata(one) for one in documents]
    return DecryptedDocuments(
        tuple(
            replace_with_placeholders(one) if why else one
            for one, why in zip(documents, lost, strict=True)
        ),
        tuple(() for _ in documents),
        tuple(why for why in lost if why),
    )


async def decrypt(
    documents: Iterable[Document], keys: Keys, *, offline: bool = False
) -> DecryptedDocuments:
    """Decrypt what is encrypted; the rest stays as it is. Each document keeps its place.

    With `offline` an object that no key opens gets placeholders instead of stopping everything.
    """
    opened: list[Document] = []
    hidden: list[tuple[FieldPath, ...]] = []
    locked: list[RenderError] = []
    for document in documents:
        fields: tuple[FieldPath, ...] = ()
        if find_encrypted([document]):
            fields = _hidden_fields(document)
            try:
                document = await _decrypt(document, keys)  # noqa: PLW2901
            except RenderError as error:
                if not offline or error.code not in WITHOUT_KEY:
                    raise
                locked.append(error)
                document = replace_with_placeholders(document)  # noqa: PLW2901
        elif lost := find_missing_metadata(document):
            if not offline:
                raise lost
            locked.append(lost)
            document = replace_with_placeholders(document)  # noqa: PLW2901
        opened.append(document)
        hidden.append(fields)
    return DecryptedDocuments(tuple(opened), tuple(hidden), tuple(locked))


def find_missing_metadata(document: Document) -> RenderError | None:
    """What is wrong with a Secret whose values are encrypted, where no block says for whom.

    Flux does not know it for encrypted, and applies the encrypted text as it is.
    """
    if document.body.get("kind") != "Secret" or _has_block(document) or opts_out(document):
        return None
    values = {name: document.body.get(name) for name in ("data", "stringData")}
    fields = encrypted_fields(values)
    if not fields:
        return None
    problem = "it is encrypted, and has no `sops` block that says for whom: no key can open it"
    hint = "encrypt its plain text again; Flux would apply the encrypted text as if it were plain"
    where = document.location.with_field(format_path(fields[0]))
    return RenderError("render.sops.metadata", problem, location=where, hint=hint)


def opts_out(document: Document) -> bool:
    """Whether its annotation says that Flux must leave it encrypted."""
    return get_text(document.body, "metadata", "annotations", OPT_OUT).lower() == "disabled"


def _has_block(document: Document) -> bool:
    block = document.body.get(KEY)
    return isinstance(block, dict) and bool(block.get("mac"))


def _inner_files(document: Document) -> Iterator[tuple[str, bytes, Format]]:
    """Entries of a Secret that are encrypted files: name, text and format."""
    entries = document.body.get("data")
    if document.body.get("kind") != "Secret" or not isinstance(entries, dict):
        return
    for name, value in entries.items():
        try:
            text = base64.b64decode(value) if isinstance(value, str) else b""
        except (binascii.Error, ValueError):
            continue
        form = detect_format(text, name)
        if form is not None:
            yield name, text, form


def _hidden_fields(document: Document) -> tuple[FieldPath, ...]:
    if _has_block(document):
        return encrypted_fields(document.body)
    return tuple(("data", name) for name, _, _ in _inner_files(document))


async def _decrypt(document: Document, keys: Keys) -> Document:
    opened = _open_block if _has_block(document) else _open_entries
    return msgspec.structs.replace(document, body=await opened(document, keys))


async def _open_block(document: Document, keys: Keys) -> dict[str, Json]:
    where = document.location
    metadata = read_metadata(document.body[KEY], where)
    key = decrypt_data_key(metadata, keys)
    if key is not None:
        tree = decrypt_trees([document.body], key, metadata, where).trees[0]
        return tree if isinstance(tree, dict) else {}
    forms = (Format.JSON, Format.JSON)
    content, _ = await run_sops(to_json(document.body), forms, metadata, keys, where)
    return read_documents(content, where.name)[0].body


async def _open_entries(document: Document, keys: Keys) -> dict[str, Json]:
    opened = dict(get_mapping(document.body, "data"))
    for name, content, form in _inner_files(document):
        where = document.location.with_field(f"data.{name}")
        file = await decrypt_file(content, keys, where=where, reads=form, writes=format_of(name))
        opened[name] = base64.b64encode(file.content).decode()
    return {**document.body, "data": opened}


def replace_with_placeholders(document: Document) -> Document:
    """The document with a placeholder for each encrypted value, and without its `sops` block."""
    is_secret = document.body.get("kind") == "Secret"

    def stand_in(value: str, path: FieldPath) -> Json:
        if is_secret and path[:1] == ("data",):
            return _ENCODED
        return _BY_TYPE.get(encrypted_type(value), PLACEHOLDER)

    if KEY in document.body or find_missing_metadata(document):
        body = replace_encrypted(document.body, stand_in)
        return msgspec.structs.replace(document, body=body)
    replaced = {name: _ENCODED for name, _, _ in _inner_files(document)}
    if not replaced:
        return document
    data = {**get_mapping(document.body, "data"), **replaced}
    return msgspec.structs.replace(document, body={**document.body, "data": data})


class DecryptedFile(msgspec.Struct, frozen=True):
    """What was inside, and whether it is what was encrypted."""

    content: bytes
    seal: MacStatus

    def __repr__(self) -> str:
        return f"DecryptedFile({self.seal})"


async def decrypt_file(
    source: bytes,
    keys: Keys,
    *,
    where: Location,
    reads: Format | None = None,
    writes: Format | None = None,
) -> DecryptedFile:
    """Decrypt a file. Its name tells the format, unless `reads` and `writes` do."""
    if len(source) > SIZE_LIMIT:
        problem = f"the encrypted file is larger than {SIZE_LIMIT // 1024**2} MiB"
        raise RenderError("render.sops.size", problem, location=where, hint="split the file")
    reads = reads or format_of(where.name)
    forms = (reads, writes or reads)
    loaded = load(source, reads, where)
    metadata = read_metadata(loaded.block, where)
    key = decrypt_data_key(metadata, keys)
    if key is None:
        return DecryptedFile(*await run_sops(source, forms, metadata, keys, where))
    floats = reads in (Format.JSON, Format.BINARY)
    opened = decrypt_trees(loaded.trees, key, metadata, where, floats=floats)
    try:
        content = write(source, opened.trees, key, forms, where)
    except CipherError:
        problem = "an encrypted value was changed, or stands twice"
        raise RenderError("render.sops.value", problem, location=where) from None
    return DecryptedFile(content, check_mac(opened, key, metadata))


def require_intact_mac(seal: MacStatus, where: Location) -> None:
    """Raise for a file that is not as it was encrypted, for callers that take no such file."""
    if seal is MacStatus.INTACT:
        return
    problem = "the file was changed after it was encrypted: its MAC does not fit"
    if seal is MacStatus.ABSENT:
        problem = "the file has no MAC, so nothing shows whether it was changed"
    hint = "look at the change, then write the file again with `sops edit`"
    raise RenderError("render.sops.mac", problem, location=where, hint=hint)
