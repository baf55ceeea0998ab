"""The `sops` block of a file: for whom it is encrypted, what of it, and its seal.

The seal is what SOPS calls the MAC: a digest over all values, encrypted with the file's own key.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import msgspec

from tidegate.errors import Location, RenderError
from tidegate.model.k8s.objects import Json

KEY = "sops"
_UNENCRYPTED_SUFFIX = "_unencrypted"
_CLASSES = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:space:]": r"\t\n\v\f\r ",
    "[:upper:]": "A-Z",
    "[:word:]": "0-9A-Za-z_",
    "[:xdigit:]": "0-9A-Fa-f",
}
_RECIPIENT_NAMES = {
    "age": "recipient",
    "pgp": "fp",
    "kms": "arn",
    "gcp_kms": "resource_id",
    "azure_kv": "vault_url",
    "hc_vault": "vault_address",
    "hckms": "key_id",
}
_SERVICES = ("kms", "gcp_kms", "azure_kv", "hc_vault", "hckms")


class KeyGroup(msgspec.Struct, frozen=True, gc=False):
    """Recipients, each with the file's key encrypted for them."""

    age: tuple[dict[str, object], ...] | None = ()
    pgp: tuple[dict[str, object], ...] | None = ()
    kms: tuple[dict[str, object], ...] | None = ()
    gcp_kms: tuple[dict[str, object], ...] | None = ()
    azure_kv: tuple[dict[str, object], ...] | None = ()
    hc_vault: tuple[dict[str, object], ...] | None = ()
    hckms: tuple[dict[str, object], ...] | None = ()

    def recipients(self) -> tuple[str, ...]:
        """Each as `age age1…`, `pgp FINGERPRINT` and so on."""
        return tuple(
            f"{kind} {entry.get(name, '?')}"
            for kind, name in _RECIPIENT_NAMES.items()
            for entry in getattr(self, kind) or ()
        )


class Metadata(KeyGroup, frozen=True, gc=False):
    """What the block says."""

    key_groups: tuple[KeyGroup, ...] | None = ()
    lastmodified: str = ""
    mac: str = ""
    unencrypted_suffix: str = ""
    encrypted_suffix: str = ""
    unencrypted_regex: str = ""
    encrypted_regex: str = ""
    unencrypted_comment_regex: str = ""
    encrypted_comment_regex: str = ""
    mac_only_encrypted: bool = False

    @property
    def all_recipients(self) -> tuple[str, ...]:
        """Of all groups, in the order of the file."""
        groups = tuple(name for group in self.key_groups or () for name in group.recipients())
        return self.recipients() or groups

    @property
    def services(self) -> tuple[str, ...]:
        """Those recipients whose key never leaves a service on the network."""
        kinds = tuple(f"{kind} " for kind in _SERVICES)
        return tuple(name for name in self.all_recipients if name.startswith(kinds))

    @property
    def moment(self) -> str:
        """When it was sealed, as the seal has it: without parts of a second."""
        return re.sub(r"\.[0-9]+", "", self.lastmodified)


def read_metadata(block: Json, where: Location) -> Metadata:
    """Read the block; what SOPS would refuse is refused."""
    if not block:
        problem = "there is no `sops` block, so it is not encrypted"
        raise RenderError("render.sops.metadata", problem, location=where)
    try:
        metadata = msgspec.convert(block, Metadata, strict=False)
    except msgspec.ValidationError:
        problem = "the `sops` block does not have the form that SOPS gives it"
        hint = "restore it from Git, or encrypt the file again"
        raise RenderError("render.sops.metadata", problem, location=where, hint=hint) from None
    if not metadata.all_recipients:
        problem = "the `sops` block names nobody the file is encrypted for"
        raise RenderError("render.sops.metadata", problem, location=where)
    if len(_selectors(metadata)) > 1:
        problem = f"the `sops` block holds more than one of `{'`, `'.join(_selectors(metadata))}`"
        raise RenderError("render.sops.metadata", problem, location=where)
    return metadata


def encryption_selector(
    metadata: Metadata, where: Location
) -> Callable[[tuple[str, ...]], bool] | None:
    """Tells by its path whether a value is encrypted; None if only comments tell."""
    if metadata.encrypted_comment_regex or metadata.unencrypted_comment_regex:
        return None
    if suffix := metadata.encrypted_suffix:
        return lambda path: any(key.endswith(suffix) for key in path)
    if pattern := metadata.encrypted_regex:
        find = _compile(pattern, where).search
        return lambda path: any(find(key) for key in path)
    if pattern := metadata.unencrypted_regex:
        find = _compile(pattern, where).search
        return lambda path: not any(find(key) for key in path)
    plain = metadata.unencrypted_suffix or _UNENCRYPTED_SUFFIX
    return lambda path: not any(key.endswith(plain) for key in path)


def _selectors(metadata: Metadata) -> list[str]:
    return [
        name
        for name in metadata.__struct_fields__
        if name.endswith(("_suffix", "_regex")) and getattr(metadata, name)
    ]


def _compile(pattern: str, where: Location) -> re.Pattern[str]:
    """A regular expression of Go, as far as Python's differ from it."""
    for name, signs in _CLASSES.items():
        pattern = pattern.replace(name, signs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(pattern.replace(r"\z", r"\Z"), re.ASCII)
    except re.error:
        problem = "the regular expression in the `sops` block cannot be read"
        raise RenderError("render.sops.metadata", problem, location=where) from None
