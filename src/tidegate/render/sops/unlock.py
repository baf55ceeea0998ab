"""Find the key of a file: with an age identity, in our own process."""

from __future__ import annotations

from contextlib import suppress

from tidegate.errors import Place, RenderError, foreign
from tidegate.model.secret import Secret
from tidegate.render.sops.cipher import missing_extra
from tidegate.render.sops.keys import Keys
from tidegate.render.sops.metadata import Metadata

KEY_SIZE = 32
SHOWN_RECIPIENTS = 5
WITHOUT_KEY = frozenset({"render.sops.key", "render.sops.offline", "render.sops.extra"})
"""Errors about what nothing of ours opens: a preview goes on without it."""

_PROGRAM_ONLY = ("SOPS_AGE_KEY_CMD", "SOPS_AGE_SSH_")


def unlock(metadata: Metadata, keys: Keys) -> bytes | None:
    """The file's key, or None if no identity of ours opens it."""
    if not metadata.age or not keys.identities:
        return None
    try:
        import pyrage  # type: ignore[import-untyped]  # noqa: PLC0415  (an extra)
    except ImportError:
        raise missing_extra("pyrage") from None
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


def _is_usual(identity: Secret) -> bool:
    """Other kinds belong to plugins, or to a newer age; the `sops` program may know them."""
    return identity.reveal().startswith("AGE-SECRET-KEY-1")


def locked(metadata: Metadata, keys: Keys, where: Place, *, reason: str = "") -> RenderError:
    """The error for a file that nothing of ours opens."""
    named = _named(metadata.all_recipients)
    known = "none of the keys opens it" if keys.identities or keys.pgp else "there is no key for it"
    problem = f"{known}; it is encrypted for {named}" + (f" ({reason})" if reason else "")
    return RenderError("render.sops.key", problem, where=where, hint=_advice(metadata, keys))


def out_of_reach(metadata: Metadata, where: Place) -> RenderError:
    """The error for a file that only a service on the network could open."""
    problem = f"it is encrypted for {_named(metadata.services)}, and the network is not to be used"
    hint = "do it without offline mode, or give an age key that it is encrypted for as well"
    return RenderError("render.sops.offline", problem, where=where, hint=hint)


def _named(recipients: tuple[str, ...]) -> str:
    named = ", ".join(f"`{foreign(name)}`" for name in recipients[:SHOWN_RECIPIENTS])
    more = len(recipients) - SHOWN_RECIPIENTS
    return named + (f" and {more} more" if more > 0 else "")


def _advice(metadata: Metadata, keys: Keys) -> str:
    if keys.passed_over:
        names = ", ".join(f"`{name}`" for name in keys.passed_over)
        return f"Flux reads entries that end in `.agekey` or `.asc`, and so passes over {names}"
    if not metadata.age and not metadata.key_groups:
        return "install `sops`, and give it the key as you do when you run it by hand"
    return "give the key in `SOPS_AGE_KEY` or `SOPS_AGE_KEY_FILE`"
