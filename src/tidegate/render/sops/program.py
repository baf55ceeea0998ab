"""The `sops` program, for keys that Tidegate cannot use itself: PGP, cloud services, Vault.

It gets keys through its environment. Its messages are not shown: they may quote values.
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

_SUCCESS = 0
_MAC_MISMATCH = 51
_MAC_MISSING = 52
_NO_KEY = 128
_ARMORED_KEY = lazy_regex(
    r"-----BEGIN PGP [^\n]*-----\n(?:[^\n]+\n)*?\n(?P<body>[^-]*?)\n=", re.DOTALL
)


async def run_sops(
    source: bytes, forms: tuple[Format, Format], metadata: Metadata, keys: Keys, location: Location
) -> tuple[bytes, MacStatus]:
    """Return the decrypted file, and the status of its MAC."""
    if not needs_program(metadata, keys):
        raise no_key_error(metadata, keys, location)
    if keys.offline and metadata.services:
        raise offline_error(metadata, location)
    code, content = await _run(source, forms, keys, location, metadata, "decrypt")
    mac_status = {_SUCCESS: MacStatus.INTACT, _MAC_MISSING: MacStatus.ABSENT}.get(
        code, MacStatus.BROKEN
    )
    if code in (_MAC_MISMATCH, _MAC_MISSING):
        code, content = await _run(
            source, forms, keys, location, metadata, "decrypt", "--ignore-mac"
        )
    if code != _SUCCESS:
        problem = f"`{keys.program}` could not decrypt it: exit code {code}"
        hint = f"run `{keys.program} decrypt` on the file to see its error"
        raise RenderError("render.sops.program", problem, location=location, hint=hint)
    return content, mac_status


async def _run(
    source: bytes,
    forms: tuple[Format, Format],
    keys: Keys,
    location: Location,
    metadata: Metadata,
    *arguments: str,
) -> tuple[int, bytes]:
    with scratch_directory() as scratch:
        type_options = ("--input-type", forms[0].value, "--output-type", forms[1].value)
        command = Command(
            argv=(keys.program, *arguments, *type_options, "/dev/stdin"),
            env=_environment(keys, scratch),
            cwd=scratch,
            stdin=source,
            accepted_codes=frozenset(range(256)),
        )
        try:
            result = await run(command)
        except ProcessError as error:
            if error.code != "external.missing":
                raise
            raise no_key_error(metadata, keys, location, reason=error.problem) from error
    if result.exit_code == _NO_KEY:
        raise no_key_error(metadata, keys, location)
    return result.exit_code, result.stdout


def _environment(keys: Keys, scratch: Path) -> dict[str, str]:
    environment = dict(keys.environment)
    if keys.identities:
        environment["SOPS_AGE_KEY"] = "\n".join(secret.reveal() for secret in keys.identities)
        # The file was already read, and its path may be relative to another directory.
        environment.pop("SOPS_AGE_KEY_FILE", None)
    if keys.offline:
        environment.pop("SOPS_KEYSERVICE", None)
    if keys.is_isolated:
        environment |= {"HOME": str(scratch), "XDG_CONFIG_HOME": str(scratch)}
    if keys.pgp:
        _write_secret_keyring(scratch, keys.pgp)
        environment["GNUPGHOME"] = str(scratch)
    return environment


def _write_secret_keyring(directory: Path, armored_keys: tuple[SecretValue, ...]) -> None:
    """Write PGP keys as a keyring that `sops` reads without `gpg`."""
    keyring = b""
    for armored_key in armored_keys:
        match = _ARMORED_KEY.search(armored_key.reveal().replace("\r\n", "\n"))
        try:
            keyring += base64.b64decode(match["body"].replace("\n", "")) if match else b""
        except binascii.Error:
            continue
    path = directory / "secring.gpg"
    path.touch(mode=0o600)
    path.write_bytes(keyring)
