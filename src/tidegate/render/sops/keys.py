"""What opens SOPS files: age identities, PGP keys, and credentials for key services.

They come from the environment, as the `sops` program takes them, or from a Secret, as Flux names
its entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

import msgspec

from tidegate.documents import read_documents
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.files import read_regular_file
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.secret import SecretValue
from tidegate.render.sops.metadata import Metadata
from tidegate.render.sops.tree import missing_extra_error

KEY_SIZE = 32
SHOWN_RECIPIENTS = 5
WRONG_KEY = "render.sops.wrong-key"
WITHOUT_KEY = frozenset({"render.sops.key", "render.sops.offline", "render.sops.extra", WRONG_KEY})
"""Errors about what nothing of ours opens: a preview goes on without it."""
_PROGRAM_ONLY = ("SOPS_AGE_KEY_CMD", "SOPS_AGE_SSH_")
_PASSED_ON = (
    *("SOPS_", "AWS_", "GOOGLE_", "CLOUDSDK_", "AZURE_", "VAULT_", "GNUPG", "GPG_", "HUAWEI"),
)
_AWS = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
_AZURE = {
    "tenantId": "AZURE_TENANT_ID",
    "clientId": "AZURE_CLIENT_ID",
    "clientSecret": "AZURE_CLIENT_SECRET",
    "clientCertificatePassword": "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "authorityHost": "AZURE_AUTHORITY_HOST",
}


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """What we were given. Nothing of it prints.

    `passed_over` names the entries of a Secret that Flux does not read. With `alone` the `sops`
    program must not look into the user's home for more keys, and with `offline` it must not ask
    anybody on the network. `looked` says where keys were looked for, and what was there. With
    `sealed` nothing is opened: nobody has asked for it.
    """

    identities: tuple[SecretValue, ...] = ()
    pgp: tuple[SecretValue, ...] = ()
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    passed_over: tuple[str, ...] = ()
    alone: bool = False
    offline: bool = False
    program: str = "sops"
    looked: tuple[str, ...] = ()
    sealed: bool = False

    def __repr__(self) -> str:
        return "Keys()"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, program: str = "sops") -> Keys:
        """From `SOPS_AGE_KEY`, `SOPS_AGE_KEY_FILE` and the file that `sops` looks for itself."""
        text = environ.get("SOPS_AGE_KEY", "")
        found = {"SOPS_AGE_KEY": read_identities("\n".join(text.split()), Location("SOPS_AGE_KEY"))}
        if named := environ.get("SOPS_AGE_KEY_FILE"):
            found[named] = read_identities(_read_file(Path(named)), Location(named))
        usual = _usual_file(environ)
        if usual is not None:
            there = (
                read_identities(_read_file(usual), Location(str(usual))) if usual.is_file() else ()
            )
            found[str(usual)] = (*found.get(str(usual), ()), *there)
        kept = {name: value for name, value in environ.items() if name.startswith(_PASSED_ON)}
        return cls(
            identities=tuple(one for mine in found.values() for one in mine),
            environment=kept,
            program=program,
            looked=tuple(_told_place(f"`{name}`", mine) for name, mine in found.items()),
        )

    @classmethod
    def from_secret(
        cls, entries: Mapping[str, bytes], *, where: Location | None = None, program: str = "sops"
    ) -> Keys:
        """From the decoded entries of the Secret that `spec.decryption.secretRef` names."""
        identities: tuple[SecretValue, ...] = ()
        pgp: list[SecretValue] = []
        environment: dict[str, str] = {}
        passed_over, looked = [], []
        for name in sorted(entries):
            text = entries[name].decode("utf-8", "replace").strip()
            place = Location(where.name if where else "Secret", field=name)
            match PurePosixPath(name).suffix:
                case ".agekey":
                    mine = read_identities(text, place)
                    identities += mine
                    looked.append(_told_place(f"{place.name} (`{name}`)", mine))
                case ".asc":
                    pgp.append(SecretValue(text))
                case _ if found := _credentials(name, text, place):
                    environment |= found
                case _:
                    passed_over.append(name)
        return cls(
            identities=identities,
            pgp=tuple(pgp),
            environment=environment,
            passed_over=tuple(passed_over),
            alone=True,
            program=program,
            looked=tuple(looked) or (f"{where.name if where else 'Secret'}: no age key",),
        )


def _told_place(place: str, identities: tuple[SecretValue, ...]) -> str:
    """Where keys were looked for, and for which recipients there were some."""
    named = ", ".join(filter(None, map(_recipient_of, identities[:SHOWN_RECIPIENTS])))
    more = len(identities) - SHOWN_RECIPIENTS
    return f"{place}: {named or 'no key'}" + (f" and {more} more" if more > 0 else "")


def _recipient_of(identity: SecretValue) -> str:
    """The public half of a key; it may be shown."""
    try:
        import pyrage  # type: ignore[import-untyped]  # noqa: PLC0415  (an extra)
    except ImportError:
        return "a key"
    try:
        return str(pyrage.x25519.Identity.from_str(identity.reveal()).to_public())
    except pyrage.IdentityError:
        return "a key of another kind, or a damaged one"


def read_identities(text: str, where: Location) -> tuple[SecretValue, ...]:
    """The age identities of a key file; `#` starts a comment."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(found, 1):
        if not line.startswith(("AGE-SECRET-KEY-", "AGE-PLUGIN-")):
            problem = f"entry {number} is not an age identity"
            hint = "an identity starts with `AGE-SECRET-KEY-1`; `age1…` is a recipient"
            raise RenderError("render.sops.identity", problem, location=where, hint=hint)
    return tuple(SecretValue(line) for line in found)


def _credentials(name: str, text: str, where: Location) -> dict[str, str]:
    match name:
        case "sops.vault-token":
            return {"VAULT_TOKEN": text}
        case "sops.gcp-kms":
            return {"GOOGLE_CREDENTIALS": text}
        case "sops.aws-kms":
            return _renamed(text, _AWS, where)
        case "sops.azure-kv":
            return _renamed(text, _AZURE, where)
        case _:
            return {}


def _renamed(text: str, names: Mapping[str, str], where: Location) -> dict[str, str]:
    entries: dict[str, Json] = {}
    try:
        entries = read_documents(text, where.name)[0].body
    except (DocumentError, IndexError):
        problem = "the credentials are not a YAML mapping"
        raise RenderError("render.sops.identity", problem, location=where) from None
    return {names[key]: str(value) for key, value in entries.items() if key in names}


def _usual_file(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME")
    folder = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    return Path(folder, "sops", "age", "keys.txt") if folder else None


def _read_file(path: Path) -> str:
    try:
        return read_regular_file(path).decode()
    except (OSError, UnicodeDecodeError):
        problem = "the age key file cannot be read"
        hint = "`SOPS_AGE_KEY_FILE` must name a text file that you may read"
        where = Location(str(path))
        raise RenderError("render.sops.identity", problem, location=where, hint=hint) from None


def decrypt_data_key(metadata: Metadata, keys: Keys) -> bytes | None:
    """The file's key, or None if no identity of ours opens it."""
    if not metadata.age or not keys.identities:
        return None
    try:
        import pyrage  # noqa: PLC0415  (an extra)
    except ImportError:
        raise missing_extra_error("pyrage") from None
    try:
        usual = [secret.reveal() for secret in keys.identities if _is_usual(secret)]
        identities = [pyrage.x25519.Identity.from_str(text) for text in usual]
    except pyrage.IdentityError:
        problem = "one of the age identities is damaged"
        hint = "copy it again; it is one line that starts with `AGE-SECRET-KEY-1`"
        raise RenderError("render.sops.identity", problem, hint=hint) from None
    for entry in metadata.age:
        with suppress(pyrage.DecryptError):
            key: bytes = pyrage.decrypt(str(entry.get("enc")).encode(), identities)
            if len(key) == KEY_SIZE:
                return key
    return None


def needs_program(metadata: Metadata, keys: Keys) -> bool:
    """Whether the `sops` program could open what we cannot."""
    if metadata.key_groups or not all(map(_is_usual, keys.identities)):
        return True
    if any(name.startswith(_PROGRAM_ONLY) for name in keys.environment):
        return True
    return any(not name.startswith("age age1") for name in metadata.all_recipients)


def _is_usual(identity: SecretValue) -> bool:
    """Other kinds belong to plugins, or to a newer age; the `sops` program may know them."""
    return identity.reveal().startswith("AGE-SECRET-KEY-1")


def no_key_error(
    metadata: Metadata, keys: Keys, where: Location, *, reason: str = ""
) -> RenderError:
    """The error for a file that nothing of ours opens."""
    named = _named(metadata.all_recipients)
    is_wrong = bool(keys.identities or keys.pgp)
    known = "none of the keys opens it" if is_wrong else "there is no key for it"
    problem = f"{known}; it is encrypted for {named}" + (f" ({reason})" if reason else "")
    looked = f"; looked at {', '.join(keys.looked)}" if keys.looked else ""
    hint = _advice(metadata, keys) + looked
    if is_wrong:
        return RenderError("render.sops.wrong-key", problem, location=where, hint=hint)
    return RenderError("render.sops.key", problem, location=where, hint=hint)


def offline_error(metadata: Metadata, where: Location) -> RenderError:
    """The error for a file that only a service on the network could open."""
    problem = f"it is encrypted for {_named(metadata.services)}, and the network is not to be used"
    hint = "do it without offline mode, or give an age key that it is encrypted for as well"
    return RenderError("render.sops.offline", problem, location=where, hint=hint)


def _named(recipients: tuple[str, ...]) -> str:
    named = ", ".join(f"`{sanitize(name)}`" for name in recipients[:SHOWN_RECIPIENTS])
    more = len(recipients) - SHOWN_RECIPIENTS
    return named + (f" and {more} more" if more > 0 else "")


def _advice(metadata: Metadata, keys: Keys) -> str:
    if keys.passed_over:
        names = ", ".join(f"`{name}`" for name in keys.passed_over)
        return f"Flux reads entries that end in `.agekey` or `.asc`, and so passes over {names}"
    if keys.alone:
        return "put a key of one of these into an entry `*.agekey` of the Secret"
    if not metadata.age and not metadata.key_groups:
        return "install `sops`, and give it the key as you do when you run it by hand"
    return "give the key in `SOPS_AGE_KEY` or `SOPS_AGE_KEY_FILE`"
