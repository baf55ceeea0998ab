"""Keys for SOPS files: age identities, PGP keys, and credentials for key services.

They come from the environment, as for the `sops` program, or from a Secret, as for Flux.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

import msgspec

from tidegate.documents import read_documents
from tidegate.errors import DocumentError, Location, RenderError
from tidegate.files import read_regular_file
from tidegate.model.display import join_limited, join_quoted
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.sops.metadata import Metadata
from tidegate.render.sops.tree import missing_extra_error

KEY_SIZE = 32
MAX_SHOWN_RECIPIENTS = 5
WRONG_KEY = "render.sops.wrong-key"
WITHOUT_KEY = frozenset({"render.sops.key", "render.sops.offline", "render.sops.extra", WRONG_KEY})
"""Errors for a missing key: a preview continues without it."""
_AGE = lazy_regex(r"AGE-|age1")
_PROGRAM_ONLY = ("SOPS_AGE_KEY_CMD", "SOPS_AGE_SSH_")
_PASSED_PREFIXES = (
    *("SOPS_", "AWS_", "GOOGLE_", "CLOUDSDK_", "AZURE_", "VAULT_", "GNUPG", "GPG_", "HUAWEI"),
)
_AWS_VARIABLES = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
_AZURE_VARIABLES = {
    "tenantId": "AZURE_TENANT_ID",
    "clientId": "AZURE_CLIENT_ID",
    "clientSecret": "AZURE_CLIENT_SECRET",
    "clientCertificatePassword": "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "authorityHost": "AZURE_AUTHORITY_HOST",
}


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys and credentials. The representation has none of them."""

    identities: tuple[SecretValue, ...] = ()
    """age identities."""
    pgp: tuple[SecretValue, ...] = ()
    """PGP keys."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Environment variables for the `sops` program."""
    ignored_entries: tuple[str, ...] = ()
    """Entries of a Secret that Flux does not read."""
    is_isolated: bool = False
    """Whether the `sops` program must not use keys in the user's home directory."""
    offline: bool = False
    """Whether the `sops` program must not use the network."""
    program: str = "sops"
    """The `sops` program."""
    searched: tuple[str, ...] = ()
    """Where keys were searched, and which ones were found."""
    is_disabled: bool = False
    """Whether nothing is decrypted, as decryption is not configured."""

    def __repr__(self) -> str:
        return "Keys()"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, program: str = "sops") -> Keys:
        """Read `SOPS_AGE_KEY`, `SOPS_AGE_KEY_FILE` and the default key file of `sops`.

        Like `loadIdentities` in `age/keysource.go` of SOPS 3.13.2.
        """
        text = environ.get("SOPS_AGE_KEY", "")
        identities_by_place = {
            "SOPS_AGE_KEY": read_identities("\n".join(text.split()), Location("SOPS_AGE_KEY"))
        }
        if key_file := environ.get("SOPS_AGE_KEY_FILE"):
            identities_by_place[key_file] = read_identities(
                _read_file(Path(key_file)), Location(key_file)
            )
        default_file = _default_key_file(environ)
        if default_file is not None:
            default_identities = (
                read_identities(_read_file(default_file), Location(str(default_file)))
                if default_file.is_file()
                else ()
            )
            identities_by_place[str(default_file)] = (
                *identities_by_place.get(str(default_file), ()),
                *default_identities,
            )
        passed = {
            name: value for name, value in environ.items() if name.startswith(_PASSED_PREFIXES)
        }
        return cls(
            identities=tuple(
                identity for identities in identities_by_place.values() for identity in identities
            ),
            environment=passed,
            program=program,
            searched=tuple(
                _describe_searched(f"`{name}`", identities)
                for name, identities in identities_by_place.items()
            ),
        )

    @classmethod
    def from_secret(
        cls,
        entries: Mapping[str, bytes],
        *,
        location: Location | None = None,
        program: str = "sops",
        is_from_file: bool = False,
    ) -> Keys:
        """Read the decoded entries of the Secret that `spec.decryption.secretRef` names.

        Like `ImportKeys` in `internal/decryptor/decryptor.go` of kustomize-controller 1.9.6.
        `is_from_file`: the key may be missing, because the file has a reference to it that another
        program replaces.
        """
        identities: tuple[SecretValue, ...] = ()
        pgp: list[SecretValue] = []
        environment: dict[str, str] = {}
        ignored_entries, searched = [], []
        for name in sorted(entries):
            text = entries[name].decode("utf-8", "replace").strip()
            entry_location = Location(location.name if location else "Secret", field=name)
            match PurePosixPath(name).suffix:
                case ".agekey" if is_from_file and not _AGE.search(text):
                    searched.append(f"{entry_location.name} (`{name}`): no age key in its file")
                case ".agekey":
                    entry_identities = read_identities(text, entry_location)
                    identities += entry_identities
                    searched.append(
                        _describe_searched(f"{entry_location.name} (`{name}`)", entry_identities)
                    )
                case ".asc":
                    pgp.append(SecretValue(text))
                case _ if credentials := _credentials(name, text, entry_location):
                    environment |= credentials
                case _:
                    ignored_entries.append(name)
        return cls(
            identities=identities,
            pgp=tuple(pgp),
            environment=environment,
            ignored_entries=tuple(ignored_entries),
            is_isolated=True,
            program=program,
            searched=tuple(searched) or (f"{location.name if location else 'Secret'}: no age key",),
        )


def _describe_searched(place: str, identities: tuple[SecretValue, ...]) -> str:
    """Return where keys were searched, and the recipients of the keys there."""
    recipients = [*filter(None, map(_recipient, identities))]
    return f"{place}: {join_limited(recipients, MAX_SHOWN_RECIPIENTS) or 'no key'}"


def _recipient(identity: SecretValue) -> str:
    """Return the public key of an identity, which may be shown."""
    try:
        import pyrage  # type: ignore[import-untyped]  # noqa: PLC0415  (an extra)
    except ImportError:
        return "a key"
    try:
        return str(pyrage.x25519.Identity.from_str(identity.reveal()).to_public())
    except pyrage.IdentityError:
        return "a key of another type, or a damaged key"


def read_identities(text: str, location: Location) -> tuple[SecretValue, ...]:
    """Return the age identities of a key file; `#` starts a comment.

    Like `parseIdentities` in `age/keysource.go` of SOPS 3.13.2.
    """
    lines = [line.strip() for line in text.splitlines()]
    identities = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(identities, 1):
        if not line.startswith(("AGE-SECRET-KEY-", "AGE-PLUGIN-")):
            problem = f"entry {number} is not an age identity"
            hint = "an identity starts with `AGE-SECRET-KEY-1`; `age1…` is a recipient"
            raise RenderError("render.sops.identity", problem, location=location, hint=hint)
    return tuple(SecretValue(line) for line in identities)


def _credentials(name: str, text: str, location: Location) -> dict[str, str]:
    match name:
        case "sops.vault-token":
            return {"VAULT_TOKEN": text}
        case "sops.gcp-kms":
            return {"GOOGLE_CREDENTIALS": text}
        case "sops.aws-kms":
            return _read_variables(text, _AWS_VARIABLES, location)
        case "sops.azure-kv":
            return _read_variables(text, _AZURE_VARIABLES, location)
        case _:
            return {}


def _read_variables(text: str, names: Mapping[str, str], location: Location) -> dict[str, str]:
    entries: dict[str, Json] = {}
    try:
        entries = read_documents(text, location.name)[0].body
    except (DocumentError, IndexError):
        problem = "the credentials are not a YAML mapping"
        raise RenderError("render.sops.identity", problem, location=location) from None
    return {names[key]: str(value) for key, value in entries.items() if key in names}


def _default_key_file(environ: Mapping[str, str]) -> Path | None:
    user_home = environ.get("HOME")
    config_directory = environ.get("XDG_CONFIG_HOME") or (
        f"{user_home}/.config" if user_home else ""
    )
    return Path(config_directory, "sops", "age", "keys.txt") if config_directory else None


def _read_file(path: Path) -> str:
    try:
        return read_regular_file(path).decode()
    except (OSError, UnicodeDecodeError):
        problem = "cannot read the age key file"
        hint = "set `SOPS_AGE_KEY_FILE` to a readable text file"
        location = Location(str(path))
        raise RenderError("render.sops.identity", problem, location=location, hint=hint) from None


def decrypt_data_key(metadata: Metadata, keys: Keys) -> bytes | None:
    """Return the data key of a file; None if no identity decrypts it.

    Like `GetDataKeyWithKeyServices` and `decryptKeyGroup` in `sops.go` of SOPS 3.13.2.
    """
    if not metadata.age or not keys.identities:
        return None
    try:
        import pyrage  # noqa: PLC0415  (an extra)
    except ImportError:
        raise missing_extra_error("pyrage") from None
    try:
        native = [secret.reveal() for secret in keys.identities if _is_native(secret)]
        identities = [pyrage.x25519.Identity.from_str(text) for text in native]
    except pyrage.IdentityError:
        problem = "one of the age identities is damaged"
        hint = "copy it again: one line that starts with `AGE-SECRET-KEY-1`"
        raise RenderError("render.sops.identity", problem, hint=hint) from None
    for entry in metadata.age:
        with suppress(pyrage.DecryptError):
            key: bytes = pyrage.decrypt(str(entry.get("enc")).encode(), identities)
            if len(key) == KEY_SIZE:
                return key
    return None


def needs_program(metadata: Metadata, keys: Keys) -> bool:
    """Return whether only the `sops` program could decrypt the file."""
    if metadata.key_groups or not all(map(_is_native, keys.identities)):
        return True
    if any(name.startswith(_PROGRAM_ONLY) for name in keys.environment):
        return True
    return any(not name.startswith("age age1") for name in metadata.all_recipients)


def _is_native(identity: SecretValue) -> bool:
    """Return whether an identity is native.

    Others need a plugin or a newer version of age, which the `sops` program may have.
    """
    return identity.reveal().startswith("AGE-SECRET-KEY-1")


def no_key_error(
    metadata: Metadata, keys: Keys, location: Location, *, reason: str = ""
) -> RenderError:
    """Return the error for a file that no key decrypts."""
    recipients = join_quoted(metadata.all_recipients, MAX_SHOWN_RECIPIENTS)
    has_wrong_key = bool(keys.identities or keys.pgp)
    reason_text = "no available key can decrypt it" if has_wrong_key else "no decryption key found"
    problem = f"{reason_text}; it is encrypted for {recipients}" + (
        f" ({reason})" if reason else ""
    )
    searched = f"; searched {', '.join(keys.searched)}" if keys.searched else ""
    hint = _hint(metadata, keys) + searched
    if has_wrong_key:
        return RenderError("render.sops.wrong-key", problem, location=location, hint=hint)
    return RenderError("render.sops.key", problem, location=location, hint=hint)


def offline_error(metadata: Metadata, location: Location) -> RenderError:
    """Return the error for a file that only a service on the network could decrypt."""
    services = join_quoted(metadata.services, MAX_SHOWN_RECIPIENTS)
    problem = f"it is encrypted for {services}, which needs network access"
    hint = "run without `--offline`, or provide an age key that can decrypt it"
    return RenderError("render.sops.offline", problem, location=location, hint=hint)


def _hint(metadata: Metadata, keys: Keys) -> str:
    if keys.ignored_entries:
        names = ", ".join(f"`{name}`" for name in keys.ignored_entries)
        return f"Flux reads only entries that end in `.agekey` or `.asc`, not {names}"
    if keys.is_isolated:
        return "add a key for one of these as an entry `*.agekey` of the Secret"
    if not metadata.age and not metadata.key_groups:
        return "install `sops`, and provide the key as for running it by hand"
    return "provide the key in `SOPS_AGE_KEY` or `SOPS_AGE_KEY_FILE`"
