"""The `sops` block of a file: its recipients, which values are encrypted, and the MAC.

The MAC is a digest over all values, encrypted with the data key of the file.
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
_CHARACTER_CLASSES = {
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
    """Recipients, each with the data key encrypted for them."""

    age: tuple[dict[str, object], ...] | None = ()
    """Recipients of age."""
    pgp: tuple[dict[str, object], ...] | None = ()
    """Recipients of PGP."""
    kms: tuple[dict[str, object], ...] | None = ()
    """Keys of AWS KMS."""
    gcp_kms: tuple[dict[str, object], ...] | None = ()
    """Keys of Google Cloud KMS."""
    azure_kv: tuple[dict[str, object], ...] | None = ()
    """Keys of Azure Key Vault."""
    hc_vault: tuple[dict[str, object], ...] | None = ()
    """Keys of HashiCorp Vault."""
    hckms: tuple[dict[str, object], ...] | None = ()
    """Keys of Huawei Cloud KMS."""

    def recipients(self) -> tuple[str, ...]:
        """Return the recipients as `age age1…`, `pgp FINGERPRINT` and so on."""
        return tuple(
            f"{kind} {entry.get(name, '?')}"
            for kind, name in _RECIPIENT_NAMES.items()
            for entry in getattr(self, kind) or ()
        )


class Metadata(KeyGroup, frozen=True, gc=False):
    """The `sops` block."""

    key_groups: tuple[KeyGroup, ...] | None = ()
    """Groups of recipients; empty if the recipients are in the block itself."""
    lastmodified: str = ""
    """Time of encryption."""
    mac: str = ""
    """The encrypted MAC."""
    unencrypted_suffix: str = ""
    """Suffix of keys whose values are not encrypted."""
    encrypted_suffix: str = ""
    """Suffix of keys whose values are encrypted."""
    unencrypted_regex: str = ""
    """Regular expression of keys whose values are not encrypted."""
    encrypted_regex: str = ""
    """Regular expression of keys whose values are encrypted."""
    unencrypted_comment_regex: str = ""
    """Regular expression of comments before values that are not encrypted."""
    encrypted_comment_regex: str = ""
    """Regular expression of comments before values that are encrypted."""
    mac_only_encrypted: bool = False
    """Whether the MAC covers only encrypted values."""

    @property
    def all_recipients(self) -> tuple[str, ...]:
        """Return the recipients of all groups, in the order of the file."""
        groups = tuple(name for group in self.key_groups or () for name in group.recipients())
        return self.recipients() or groups

    @property
    def services(self) -> tuple[str, ...]:
        """Return the recipients whose key never leaves a service on the network."""
        kinds = tuple(f"{kind} " for kind in _SERVICES)
        return tuple(name for name in self.all_recipients if name.startswith(kinds))

    @property
    def mac_time(self) -> str:
        """Return the time of encryption as the MAC covers it: without fractions of a second."""
        return re.sub(r"\.[0-9]+", "", self.lastmodified)


def read_metadata(block: Json, location: Location) -> Metadata:
    """Read the block.

    Raises RenderError if SOPS would reject it.

    Like `ToInternal` in `stores/stores.go` of SOPS 3.13.2.
    """
    if not block:
        problem = "the file has no `sops` block, so it is not encrypted"
        raise RenderError("render.sops.metadata", problem, location=location)
    try:
        metadata = msgspec.convert(block, Metadata, strict=False)
    except msgspec.ValidationError:
        problem = "the `sops` block is invalid"
        hint = "restore it from Git, or encrypt the file again"
        raise RenderError("render.sops.metadata", problem, location=location, hint=hint) from None
    if not metadata.all_recipients:
        problem = "the `sops` block has no recipients"
        raise RenderError("render.sops.metadata", problem, location=location)
    if len(_selectors(metadata)) > 1:
        problem = f"the `sops` block has more than one of `{'`, `'.join(_selectors(metadata))}`"
        raise RenderError("render.sops.metadata", problem, location=location)
    return metadata


def encryption_selector(
    metadata: Metadata, location: Location
) -> Callable[[tuple[str, ...]], bool] | None:
    """Return a function that returns whether the value at a path is encrypted.

    None if only comments decide.

    Like `shouldBeEncrypted` in `sops.go` of SOPS 3.13.2.
    """
    if metadata.encrypted_comment_regex or metadata.unencrypted_comment_regex:
        return None
    if suffix := metadata.encrypted_suffix:
        return lambda path: any(key.endswith(suffix) for key in path)
    if pattern := metadata.encrypted_regex:
        search = _compile(pattern, location).search
        return lambda path: any(search(key) for key in path)
    if pattern := metadata.unencrypted_regex:
        search = _compile(pattern, location).search
        return lambda path: not any(search(key) for key in path)
    suffix_of_plain = metadata.unencrypted_suffix or _UNENCRYPTED_SUFFIX
    return lambda path: not any(key.endswith(suffix_of_plain) for key in path)


def _selectors(metadata: Metadata) -> list[str]:
    return [
        name
        for name in metadata.__struct_fields__
        if name.endswith(("_suffix", "_regex")) and getattr(metadata, name)
    ]


def _compile(pattern: str, location: Location) -> re.Pattern[str]:
    """Compile a Go regular expression, with its differences from Python's."""
    for name, characters in _CHARACTER_CLASSES.items():
        pattern = pattern.replace(name, characters)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(pattern.replace(r"\z", r"\Z"), re.ASCII)
    except re.error:
        problem = "the regular expression in the `sops` block is invalid"
        raise RenderError("render.sops.metadata", problem, location=location) from None
