"""Addresses of Git repositories: which ones git may be given, and which are the same repository.

An address comes from a manifest, so it is untrusted. It must not be an option, name a program, or
contain a password.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex

SCHEMES = frozenset({"https", "ssh", "http", "file"})
MAX_LENGTH = 2048
DEFAULT_PORTS = {"https": 443, "ssh": 22, "http": 80}
_USER = lazy_regex(r"[A-Za-z0-9_][A-Za-z0-9._~+%-]*")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_HOST = lazy_regex(rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9a-f:.]+\])", re.IGNORECASE)
_SCP = lazy_regex(r"(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]]+\]|[^@/:]+):(?P<path>(?!:|//).+)")

_SSH_PATH = lazy_regex(r"(?P<user>[^@/:]+)@(?P<host>[^@/:]+)/(?P<path>.+)")
"""An ssh address with a slash instead of the colon.

Argo CD takes it as the address with a colon: `NormalizeGitURL` in `util/git/git.go` of 3.5.6.
"""


class GitUrl(msgspec.Struct, frozen=True, order=True):
    """A checked address."""

    scheme: str
    """The scheme."""
    host: str
    """The host."""
    port: int
    """The port; the default one of the scheme if the address has none."""
    path: str
    """The path."""
    user: str
    """The user; empty for none."""
    text: str
    """The address as git gets it."""

    @property
    def origin(self) -> str:
        """Return the scheme, the host, and a port that is not the default one."""
        is_default_port = self.port == DEFAULT_PORTS.get(self.scheme, 0)
        return f"{self.scheme}://{self.host}" + ("" if is_default_port else f":{self.port}")

    @property
    def name(self) -> str:
        """Return the host and path, equal for every address of one repository."""
        path = self.path.strip("/").removesuffix(".git").rstrip("/")
        return f"{self.host}/{path}".casefold()


def redact_password(text: str) -> str:
    """Return an address that is safe to show."""
    return sanitize(text)


def read_git_url(text: str, *, schemes: frozenset[str] = SCHEMES) -> GitUrl:
    """Check an address: `https://…`, `ssh://…`, `git@host:path`, `http://…`, `file:///…`.

    Raises SourceError for any other text.
    """
    is_plain = text.isprintable() and " " not in text and len(text) <= MAX_LENGTH
    if not text or text.startswith("-") or not is_plain:
        raise _url_error(text, "is not a valid git URL")
    if "::" in text.partition("/")[0]:
        raise _url_error(text, "would make git run a program")
    url = _read_url(text) if "://" in text else _read_scp(text)
    if url.scheme not in schemes:
        allowed = ", ".join(f"`{scheme}`" for scheme in sorted(schemes))
        raise SourceError(
            "source.url.scheme",
            f"`{redact_password(text)}` uses `{sanitize(url.scheme)}`, which is not allowed",
            hint=f"use {allowed}",
        )
    return url


def is_local_path(url: str) -> bool:
    """Return whether the address of a remote is a directory of this machine."""
    return url.startswith("file:") or ("://" not in url and not _SCP.fullmatch(url))


def is_same_repository(url: str, other_url: str) -> bool:
    """Return whether two addresses are the same repository.

    They may use ssh or https, and end with `.git` or not. Case is ignored, as the large hosts do.
    Ports are compared only between addresses of one scheme: the ssh port of a server is independent
    of its https port.
    """
    try:
        first, second = read_git_url(url), read_git_url(other_url)
    except SourceError:
        return False
    ports_agree = first.scheme != second.scheme or first.port == second.port
    return first.name == second.name and ports_agree


def _read_url(text: str) -> GitUrl:
    try:
        parts = urlsplit(text)
        port, host, password = parts.port, (parts.hostname or ""), parts.password
    except ValueError:
        raise _url_error(text, "is not a URL") from None
    scheme = parts.scheme.removeprefix("git+")
    if password is not None:
        raise SourceError(
            "source.url.password",
            f"`{redact_password(text)}` contains a password",
            location=Location(redact_password(text)),
            hint="provide it through the environment, a git credential helper or a Secret",
        )
    if scheme == "file":
        return _file_url(text, parts.netloc, unquote(parts.path))
    user = parts.username or ""
    _check_user_and_host(text, user, f"[{host}]" if ":" in host else host)
    path = parts.path
    if path.strip("/") == "" or parts.query or parts.fragment:
        raise _url_error(text, "does not contain a repository")
    return GitUrl(scheme, host, port or DEFAULT_PORTS.get(scheme, 0), path, user, text)


def _file_url(text: str, host: str, path: str) -> GitUrl:
    if host not in ("", "localhost") or not path.startswith("/"):
        raise _url_error(text, "must be written as `file:///` and an absolute path")
    return GitUrl("file", "", 0, path, "", text)


def _read_scp(text: str) -> GitUrl:
    if _SSH_PATH.fullmatch(text):
        return _read_url(f"ssh://{text}")
    match = _SCP.fullmatch(text)
    if match is None and not any(mark in text for mark in "/:.@"):
        problem = f"`{sanitize(text)}` is a word instead of the URL of a repository"
        hint = "an overlay, or a program that fills in values, must replace it"
        raise SourceError("source.placeholder", problem, hint=hint)
    if match is None:
        raise _url_error(text, "is not a repository URL")
    user, host = match["user"] or "", match["host"]
    _check_user_and_host(text, user, host)
    if match["path"].startswith("-"):
        raise _url_error(text, "has a path that begins with `-`")
    return GitUrl("ssh", host.lower().strip("[]"), 22, match["path"], user, text)


def _check_user_and_host(text: str, user: str, host: str) -> None:
    if not _HOST.fullmatch(host):
        raise _url_error(text, "has an invalid host")
    if user and not _USER.fullmatch(user):
        raise _url_error(text, "has an invalid user name")


def _url_error(text: str, reason: str) -> SourceError:
    redacted = redact_password(text)
    return SourceError(
        "source.url", f"`{redacted}` {reason}", hint="write it as `https://host/path`"
    )
