"""Which of other people's programs and libraries are here, and what each is needed for."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import msgspec

from tidegate.errors import ProcessError
from tidegate.external.tools import find_program


class Finding(msgspec.Struct, frozen=True):
    """One thing that is here or is not."""

    name: str
    state: Literal["found", "missing"]
    detail: str
    purpose: str


PROGRAMS = (
    ("git", "sources in Git repositories", "install git 2.39 or newer"),
    ("kubectl", "Kustomize overlays", "install tidegate[kustomize], or kubectl or kustomize"),
    ("sops", "files encrypted for PGP, cloud services or Vault", "install sops"),
)
LIBRARIES = (
    ("helm-python-sdk", "Helm charts", "install tidegate[helm]"),
    ("pyrage", "files encrypted for age recipients", "install tidegate[sops]"),
    ("cryptography", "files encrypted for age recipients", "install tidegate[sops]"),
)


def examine() -> Iterator[Finding]:
    """Everything that some repository may need."""
    for name, purpose, advice in PROGRAMS:
        yield _program(name, purpose, advice)
    for name, purpose, advice in LIBRARIES:
        yield _library(name, purpose, advice)


def _program(name: str, purpose: str, advice: str) -> Finding:
    for path in (os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")):
        try:
            return Finding(name, "found", str(find_program(name, path=path)), purpose)
        except ProcessError:
            continue
    return Finding(name, "missing", advice, purpose)


def _library(name: str, purpose: str, advice: str) -> Finding:
    try:
        return Finding(name, "found", version(name), purpose)
    except PackageNotFoundError:
        return Finding(name, "missing", advice, purpose)
