"""What opens SOPS files: age identities, PGP keys, and credentials for key services.

They come from the environment, as the `sops` program takes them, or from a Secret, as Flux names
its entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tidegate.documents import read
from tidegate.errors import DocumentError, Place, RenderError
from tidegate.model.objects import Json
from tidegate.model.secret import Secret

_PASSED_ON = (
    "SOPS_",
    "AWS_",
    "GOOGLE_",
    "CLOUDSDK_",
    "AZURE_",
    "VAULT_",
    "GNUPG",
    "GPG_",
    "HUAWEI",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What we were given. Nothing of it prints.

    `passed_over` names the entries of a Secret that Flux does not read. With `alone` the `sops`
    program must not look into the user's home for more keys, and with `offline` it must not ask
    anybody on the network.
    """

    identities: tuple[Secret, ...] = ()
    pgp: tuple[Secret, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    passed_over: tuple[str, ...] = ()
    alone: bool = False
    offline: bool = False
    program: str = "sops"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, program: str = "sops") -> Keys:
        """From `SOPS_AGE_KEY`, `SOPS_AGE_KEY_FILE` and the file that `sops` looks for itself."""
        text = environ.get("SOPS_AGE_KEY", "")
        identities = read_identities("\n".join(text.split()), Place("SOPS_AGE_KEY"))
        if named := environ.get("SOPS_AGE_KEY_FILE"):
            identities += read_identities(_read_file(Path(named)), Place(named))
        usual = _usual_file(environ)
        if usual is not None and usual.is_file():
            identities += read_identities(_read_file(usual), Place(str(usual)))
        kept = {name: value for name, value in environ.items() if name.startswith(_PASSED_ON)}
        return cls(identities=identities, environment=kept, program=program)

    @classmethod
    def from_secret(
        cls, entries: Mapping[str, bytes], *, where: Place | None = None, program: str = "sops"
    ) -> Keys:
        """From the decoded entries of the Secret that `spec.decryption.secretRef` names."""
        identities: tuple[Secret, ...] = ()
        pgp: list[Secret] = []
        environment: dict[str, str] = {}
        passed_over = []
        for name in sorted(entries):
            text = entries[name].decode("utf-8", "replace").strip()
            place = Place(where.name if where else "Secret", field=name)
            match PurePosixPath(name).suffix:
                case ".agekey":
                    identities += read_identities(text, place)
                case ".asc":
                    pgp.append(Secret(text))
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
        )


def read_identities(text: str, where: Place) -> tuple[Secret, ...]:
    """The age identities of a key file; `#` starts a comment."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(found, 1):
        if not line.startswith(("AGE-SECRET-KEY-", "AGE-PLUGIN-")):
            problem = f"entry {number} is not an age identity"
            hint = "an identity starts with `AGE-SECRET-KEY-1`; `age1…` is a recipient"
            raise RenderError("render.sops.identity", problem, where=where, hint=hint)
    return tuple(Secret(line) for line in found)


def _credentials(name: str, text: str, where: Place) -> dict[str, str]:
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


def _renamed(text: str, names: Mapping[str, str], where: Place) -> dict[str, str]:
    entries: dict[str, Json] = {}
    try:
        entries = read(text, where.name)[0].body
    except (DocumentError, IndexError):
        problem = "the credentials are not a YAML mapping"
        raise RenderError("render.sops.identity", problem, where=where) from None
    return {names[key]: str(value) for key, value in entries.items() if key in names}


def _usual_file(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME")
    folder = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    return Path(folder, "sops", "age", "keys.txt") if folder else None


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        problem = "the age key file cannot be read"
        hint = "`SOPS_AGE_KEY_FILE` must name a text file that you may read"
        where = Place(str(path))
        raise RenderError("render.sops.identity", problem, where=where, hint=hint) from None
