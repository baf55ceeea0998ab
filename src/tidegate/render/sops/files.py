"""Decrypt whole files: what generators and patches read, and the source behind an object.

Flux does not verify the seal of a file. We do, and say what we found: an edited file opens all the
same, unless a single value in it was changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.errors import Place, RenderError
from tidegate.render.sops.formats import Format, format_of, load
from tidegate.render.sops.keys import Keys, unlock
from tidegate.render.sops.metadata import read_metadata
from tidegate.render.sops.program import ask_program
from tidegate.render.sops.tree import CipherError, Seal, check_seal, open_trees
from tidegate.render.sops.writing import write

SIZE_LIMIT = 5 * 1024 * 1024
"""Bytes of one encrypted file; Flux takes no more."""


@dataclass(frozen=True, slots=True)
class DecryptedFile:
    """What was inside, and whether it is what was encrypted."""

    content: bytes = field(repr=False)
    seal: Seal


async def decrypt_file(
    source: bytes,
    keys: Keys,
    *,
    where: Place,
    reads: Format | None = None,
    writes: Format | None = None,
) -> DecryptedFile:
    """Decrypt a file. Its name tells the format, unless `reads` and `writes` do."""
    if len(source) > SIZE_LIMIT:
        problem = f"the encrypted file is larger than {SIZE_LIMIT // 1024**2} MiB"
        raise RenderError("render.sops.size", problem, where=where, hint="split the file")
    reads = reads or format_of(where.name)
    forms = (reads, writes or reads)
    loaded = load(source, reads, where)
    metadata = read_metadata(loaded.block, where)
    key = unlock(metadata, keys)
    if key is None:
        return DecryptedFile(*await ask_program(source, forms, metadata, keys, where))
    floats = reads in (Format.JSON, Format.BINARY)
    opened = open_trees(loaded.trees, key, metadata, where, floats=floats)
    try:
        content = write(source, opened.trees, key, forms, where)
    except CipherError:
        problem = "an encrypted value was changed, or stands twice"
        raise RenderError("render.sops.value", problem, where=where) from None
    return DecryptedFile(content, check_seal(opened, key, metadata))


def refuse_broken(seal: Seal, where: Place) -> None:
    """Raise for a file that is not as it was encrypted, for callers that take no such file."""
    if seal is Seal.INTACT:
        return
    problem = "the file was changed after it was encrypted: its MAC does not fit"
    if seal is Seal.ABSENT:
        problem = "the file has no MAC, so nothing shows whether it was changed"
    hint = "look at the change, then write the file again with `sops edit`"
    raise RenderError("render.sops.mac", problem, where=where, hint=hint)
