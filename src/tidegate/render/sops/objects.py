"""Decryption in memory, as Flux does it: objects after the build, and whole files before it.

An object is encrypted if it has a `sops` block with a MAC. In a Secret, entries of `data` may be
encrypted files. The MAC of an object is not checked: it covers the source file, which a build has
changed.

Flux does not check the MAC of a file either. Tidegate does, and reports the result: an edited file
can still be decrypted, unless an encrypted value was changed.
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
from tidegate.knowledge.settings import SOPS_SECRET_KIND
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
"""Bytes of one encrypted file, as in Flux.

Like `maxEncryptedFileSize` in `internal/decryptor/decryptor.go` of kustomize-controller 1.9.6.
"""
OPT_OUT = "kustomize.toolkit.fluxcd.io/decrypt"
PLACEHOLDER = "tidegate-placeholder"
"""Replaces a string. It is also a valid name and label."""
_PLACEHOLDER_BY_TYPE: dict[str, Json] = {
    "int": 0,
    "float": 0.5,
    "bool": False,
    "time": "1970-01-01T00:00:00Z",
}
_ENCODED_PLACEHOLDER = base64.b64encode(PLACEHOLDER.encode()).decode()


class DecryptedDocuments(msgspec.Struct, frozen=True):
    """Documents in their order, after decryption."""

    documents: tuple[Document, ...]
    """The documents."""
    secret_fields: tuple[tuple[FieldPath, ...], ...]
    """For each document, the fields that were encrypted, to be masked."""
    errors: tuple[RenderError, ...] = ()
    """Errors of documents that have placeholders, as they cannot be decrypted."""


def find_encrypted(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Return the documents that must be decrypted before they can be applied."""
    return tuple(
        document
        for document in documents
        if not opts_out(document) and (_has_block(document) or any(_inner_files(document)))
    )


def replace_undecryptable(documents: Iterable[Document]) -> DecryptedDocuments:
    """Return documents without decryption, with placeholders where a `sops` block is missing."""
    documents = tuple(documents)
    missing_metadata = [find_missing_metadata(document) for document in documents]
    return DecryptedDocuments(
        tuple(
            replace_with_placeholders(document) if error else document
            for document, error in zip(documents, missing_metadata, strict=True)
        ),
        tuple(() for _ in documents),
        tuple(error for error in missing_metadata if error),
    )


async def decrypt(
    documents: Iterable[Document], keys: Keys, *, offline: bool = False
) -> DecryptedDocuments:
    """Decrypt the encrypted documents; the others stay as they are. The order is kept.

    With `offline`, an object that no key decrypts gets placeholders instead of raising an error.

    Like `DecryptResource` and `SopsDecryptWithFormat` in `internal/decryptor/decryptor.go` of
    kustomize-controller 1.9.6.
    """
    decrypted: list[Document] = []
    secret_fields: list[tuple[FieldPath, ...]] = []
    errors: list[RenderError] = []
    for document in documents:
        fields: tuple[FieldPath, ...] = ()
        if find_encrypted([document]):
            fields = _secret_fields(document)
            try:
                document = await _decrypt(document, keys)  # noqa: PLW2901
            except RenderError as error:
                if not offline or error.code not in WITHOUT_KEY:
                    raise
                errors.append(error)
                document = replace_with_placeholders(document)  # noqa: PLW2901
        elif missing_metadata := find_missing_metadata(document):
            if not offline:
                raise missing_metadata
            errors.append(missing_metadata)
            document = replace_with_placeholders(document)  # noqa: PLW2901
        decrypted.append(document)
        secret_fields.append(fields)
    return DecryptedDocuments(tuple(decrypted), tuple(secret_fields), tuple(errors))


def find_missing_metadata(document: Document) -> RenderError | None:
    """Return the error for a Secret with encrypted values and no `sops` block; else None.

    Flux does not notice that it is encrypted, and applies the encrypted text.
    """
    if document.body.get("kind") != "Secret" or _has_block(document) or opts_out(document):
        return None
    values = {name: document.body.get(name) for name in ("data", "stringData")}
    fields = encrypted_fields(values)
    if not fields:
        return None
    problem = "it is encrypted but has no `sops` block, so no key can decrypt it"
    hint = "encrypt the plain text again; Flux would apply the encrypted text unchanged"
    location = document.location.with_field(format_path(fields[0]))
    return RenderError("render.sops.metadata", problem, location=location, hint=hint)


def opts_out(document: Document) -> bool:
    """Return whether an annotation configures Flux to leave the object encrypted.

    Like `IsDecryptionDisabled` in `internal/decryptor/decryptor.go` of kustomize-controller 1.9.6.
    An operator decrypts a SopsSecret in the cluster.
    """
    if get_text(document.body, "kind") == SOPS_SECRET_KIND:
        return True
    return get_text(document.body, "metadata", "annotations", OPT_OUT).lower() == "disabled"


def _has_block(document: Document) -> bool:
    block = document.body.get(KEY)
    return isinstance(block, dict) and bool(block.get("mac"))


def _inner_files(document: Document) -> Iterator[tuple[str, bytes, Format]]:
    """Yield the entries of a Secret that are encrypted files: name, text and format."""
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


def _secret_fields(document: Document) -> tuple[FieldPath, ...]:
    if _has_block(document):
        return encrypted_fields(document.body)
    return tuple(("data", name) for name, _, _ in _inner_files(document))


async def _decrypt(document: Document, keys: Keys) -> Document:
    decrypt_body = _decrypt_block if _has_block(document) else _decrypt_entries
    return msgspec.structs.replace(document, body=await decrypt_body(document, keys))


async def _decrypt_block(document: Document, keys: Keys) -> dict[str, Json]:
    location = document.location
    metadata = read_metadata(document.body[KEY], location)
    key = decrypt_data_key(metadata, keys)
    if key is not None:
        tree = decrypt_trees([document.body], key, metadata, location).trees[0]
        return tree if isinstance(tree, dict) else {}
    forms = (Format.JSON, Format.JSON)
    content, _ = await run_sops(to_json(document.body), forms, metadata, keys, location)
    return read_documents(content, location.name)[0].body


async def _decrypt_entries(document: Document, keys: Keys) -> dict[str, Json]:
    entries = dict(get_mapping(document.body, "data"))
    for name, content, form in _inner_files(document):
        location = document.location.with_field(f"data.{name}")
        file = await decrypt_file(
            content, keys, location=location, input_format=form, output_format=format_of(name)
        )
        entries[name] = base64.b64encode(file.content).decode()
    return {**document.body, "data": entries}


def replace_with_placeholders(document: Document) -> Document:
    """Return the document with placeholders for encrypted values, and without its `sops` block."""
    is_secret = document.body.get("kind") == "Secret"

    def placeholder(value: str, path: FieldPath) -> Json:
        if is_secret and path[:1] == ("data",):
            return _ENCODED_PLACEHOLDER
        return _PLACEHOLDER_BY_TYPE.get(encrypted_type(value), PLACEHOLDER)

    if KEY in document.body or find_missing_metadata(document):
        body = replace_encrypted(document.body, placeholder)
        return msgspec.structs.replace(document, body=body)
    placeholders = {name: _ENCODED_PLACEHOLDER for name, _, _ in _inner_files(document)}
    if not placeholders:
        return document
    data = {**get_mapping(document.body, "data"), **placeholders}
    return msgspec.structs.replace(document, body={**document.body, "data": data})


class DecryptedFile(msgspec.Struct, frozen=True):
    """Content of a decrypted file, and the status of its MAC."""

    content: bytes
    """The decrypted content."""
    mac_status: MacStatus
    """The status of the MAC."""

    def __repr__(self) -> str:
        return f"DecryptedFile({self.mac_status})"


async def decrypt_file(
    source: bytes,
    keys: Keys,
    *,
    location: Location,
    input_format: Format | None = None,
    output_format: Format | None = None,
) -> DecryptedFile:
    """Decrypt a file. Its name defines the format, unless `input_format` and `output_format` do.

    Like `sopsDecryptFile` in `internal/decryptor/decryptor.go` of kustomize-controller 1.9.6.
    """
    if len(source) > SIZE_LIMIT:
        problem = f"the encrypted file is larger than {SIZE_LIMIT // 1024**2} MiB"
        raise RenderError("render.sops.size", problem, location=location, hint="split the file")
    input_format = input_format or format_of(location.name)
    forms = (input_format, output_format or input_format)
    encrypted = load(source, input_format, location)
    metadata = read_metadata(encrypted.metadata, location)
    key = decrypt_data_key(metadata, keys)
    if key is None:
        return DecryptedFile(*await run_sops(source, forms, metadata, keys, location))
    floats = input_format in (Format.JSON, Format.BINARY)
    decrypted = decrypt_trees(encrypted.trees, key, metadata, location, floats=floats)
    try:
        content = write(source, decrypted.trees, key, forms, location)
    except CipherError:
        problem = "an encrypted value was changed or is duplicated"
        raise RenderError("render.sops.value", problem, location=location) from None
    return DecryptedFile(content, check_mac(decrypted, key, metadata))


def require_intact_mac(mac_status: MacStatus, location: Location) -> None:
    """Raise RenderError for a file that was changed after encryption."""
    if mac_status is MacStatus.INTACT:
        return
    problem = "the file was changed after it was encrypted: its MAC does not match"
    if mac_status is MacStatus.ABSENT:
        problem = "the file has no MAC, so changes cannot be detected"
    hint = "review the change, then save the file again with `sops edit`"
    raise RenderError("render.sops.mac", problem, location=location, hint=hint)
