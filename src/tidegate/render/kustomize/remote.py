"""Tell a remote reference from a path, as kustomize tells them apart."""

from __future__ import annotations

import re

_SCHEMES = ("ssh://", "https://", "http://", "file://")
_FILE_SCHEME = re.compile(r"https?:", re.IGNORECASE)
_USER = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*@")
_GITHUB = ("github.com/", "github.com:")
_LEAST_SEGMENTS = 2
_MARKS = ("_git/", "//", ".git")


def is_remote_file(text: str) -> bool:
    """True for what kustomize would ask a web server for."""
    return bool(_FILE_SCHEME.match(text))


def is_remote_directory(text: str) -> bool:
    """True for what kustomize would clone, even where a directory of that name exists."""
    rest = text.partition("?")[0]
    if rest[:5].lower() == "git::":
        rest = rest[5:]
    scheme = next((known for known in _SCHEMES if rest.lower().startswith(known)), "")
    rest = rest[len(scheme) :]
    if scheme == "file://":
        return bool(rest)
    user = _USER.match(rest)
    rest = rest[user.end() :] if user else rest
    is_github = rest.lower().startswith(_GITHUB)
    if not scheme and not user and not is_github:
        return False
    separators = "[/:]" if not scheme else "/"
    host, *path = re.split(separators, rest, maxsplit=1)
    return bool(host) and bool(path) and _names_a_repository(path[0])


def is_remote(text: str) -> bool:
    """True for what kustomize would look for on the network."""
    return is_remote_file(text) or is_remote_directory(text)


def _names_a_repository(path: str) -> bool:
    if any(mark in path for mark in _MARKS):
        return not path.startswith("//")
    return len(path.split("/")) >= _LEAST_SEGMENTS
