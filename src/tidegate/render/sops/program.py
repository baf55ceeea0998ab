"""Ask the `sops` program, for keys that we cannot use ourselves: PGP, cloud services, Vault.

Keys reach it through its environment. What it complains about is not repeated: it may quote the
values it could not read.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path

from tidegate.errors import Location, ProcessError, RenderError
from tidegate.external.process import Command, run
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.scratch import scratch_directory
from tidegate.render.sops.formats import Format
from tidegate.render.sops.keys import Keys, needs_program, no_key_error, offline_error
from tidegate.render.sops.metadata import Metadata
from tidegate.render.sops.tree import MacStatus

_DONE = 0
_SEAL_BROKEN = 51
_SEAL_ABSENT = 52
_LOCKED = 128
_ARMOUR = lazy_regex(r"-----BEGIN PGP [^\n]*-----\n(?:[^\n]+\n)*?\n(?P<body>[^-]*?)\n=", re.DOTALL)


async def run_sops(
    source: bytes, forms: tuple[Format, Format], metadata: Metadata, keys: Keys, where: Location
) -> tuple[bytes, MacStatus]:
    """The decrypted file, and what its seal says."""
    if not needs_program(metadata, keys):
        raise no_key_error(metadata, keys, where)
    if keys.offline and metadata.services:
        raise offline_error(metadata, where)
    code, content = await _run(source, forms, keys, where, metadata, "decrypt")
    seal = {_DONE: MacStatus.INTACT, _SEAL_ABSENT: MacStatus.ABSENT}.get(code, MacStatus.BROKEN)
    if code in (_SEAL_BROKEN, _SEAL_ABSENT):
        code, content = await _run(source, forms, keys, where, metadata, "decrypt", "--ignore-mac")
    if code != _DONE:
        problem = f"`{keys.program}` could not decrypt it and ended with exit code {code}"
        hint = f"run `{keys.program} decrypt` on the file to see its own words"
        raise RenderError("render.sops.program", problem, location=where, hint=hint)
    return content, seal


async def _run(
    source: bytes,
    forms: tuple[Format, Format],
    keys: Keys,
    where: Location,
    metadata: Metadata,
    *words: str,
) -> tuple[int, bytes]:
    with scratch_directory() as home:
        kinds = ("--input-type", forms[0].value, "--output-type", forms[1].value)
        command = Command(
            argv=(keys.program, *words, *kinds, "/dev/stdin"),
            env=_environment(keys, home),
            cwd=home,
            stdin=source,
            accepted_codes=frozenset(range(256)),
        )
        try:
            ran = await run(command)
        except ProcessError as error:
            if error.code != "external.missing":
                raise
            raise no_key_error(metadata, keys, where, reason=error.problem) from error
    if ran.exit_code == _LOCKED:
        raise no_key_error(metadata, keys, where)
    return ran.exit_code, ran.stdout


def _environment(keys: Keys, home: Path) -> dict[str, str]:
    environment = dict(keys.environment)
    if keys.identities:
        environment["SOPS_AGE_KEY"] = "\n".join(secret.reveal() for secret in keys.identities)
        # What it names was read already, and may lie relative to another directory.
        environment.pop("SOPS_AGE_KEY_FILE", None)
    if keys.offline:
        environment.pop("SOPS_KEYSERVICE", None)
    if keys.alone:
        environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    if keys.pgp:
        _write_ring(home, keys.pgp)
        environment["GNUPGHOME"] = str(home)
    return environment


def _write_ring(home: Path, armoured: tuple[SecretValue, ...]) -> None:
    """A ring of secret keys as `sops` reads it, so that no `gpg` need be installed."""
    ring = b""
    for secret in armoured:
        found = _ARMOUR.search(secret.reveal().replace("\r\n", "\n"))
        try:
            ring += base64.b64decode(found["body"].replace("\n", "")) if found else b""
        except binascii.Error:
            continue
    path = home / "secring.gpg"
    path.touch(mode=0o600)
    path.write_bytes(ring)
