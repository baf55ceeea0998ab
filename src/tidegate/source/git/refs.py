"""Choose a commit among the refs that a repository shows. Nothing here talks to anyone."""

from __future__ import annotations

import re

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import GitRef, GitRefKind, Revision
from tidegate.source.semver import pick_highest, read_range, read_version, require_range
from tidegate.source.urls import redact_password

HEADS, TAGS, PEELED = "refs/heads/", "refs/tags/", "^{}"
_WHOLE = lazy_regex(r"(?:[0-9a-f]{40}|[0-9a-f]{64})", re.IGNORECASE)
_SHORT = lazy_regex(r"[0-9a-f]{4,64}", re.IGNORECASE)
_FORBIDDEN = lazy_regex(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(?:/|$)|^[-/.]|[/.]$")


class RemoteRefs(msgspec.Struct, frozen=True):
    """What a repository shows: its default branch, and the commit behind each name."""

    head: str
    commits: dict[str, str]


def read_remote_refs(listed: bytes) -> RemoteRefs:
    """Read what `git ls-remote --symref` wrote. A tag's own object gives way to its commit."""
    head, commits = "", {}
    for line in listed.decode(errors="surrogateescape").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: "):
            head = value.removeprefix("ref: ") if name == "HEAD" else head
        elif name.endswith(PEELED):
            commits[name.removesuffix(PEELED)] = value
        else:
            commits[name] = value
    return RemoteRefs(head, commits)


def check_ref(at: GitRef) -> None:
    """Refuse what no ref can be, before git is asked."""
    wanted = at.text
    match at.kind:
        case GitRefKind.HEAD:
            return
        case GitRefKind.RANGE:
            require_range(wanted)
        case GitRefKind.COMMIT if not _SHORT.fullmatch(wanted):
            raise invalid_ref_error(wanted, "is not a commit: those are hexadecimal")
        case GitRefKind.ANY if read_range(wanted) is not None or not wanted:
            return
        case _ if not wanted or _FORBIDDEN.search(wanted):
            raise invalid_ref_error(wanted, "cannot be the name of a branch, a tag or a commit")
        case _:
            return


def full_commit(at: GitRef) -> Revision | None:
    """The revision of a ref that needs no looking up."""
    if at.kind in (GitRefKind.COMMIT, GitRefKind.ANY) and _WHOLE.fullmatch(at.text):
        return Revision("", commit_digest(at.text.lower()))
    return None


def is_short_commit(at: GitRef) -> bool:
    """Whether it can be the beginning of a commit that no ref points to."""
    return at.kind in (GitRefKind.COMMIT, GitRefKind.ANY) and bool(_SHORT.fullmatch(at.text))


def choose_commit(at: GitRef, refs: RemoteRefs) -> Revision | None:
    """The commit that a ref means now; nothing if no ref is called so."""
    match at.kind:
        case GitRefKind.HEAD:
            return _head(refs)
        case GitRefKind.BRANCH:
            return _named(refs, HEADS + at.text, at.text)
        case GitRefKind.TAG:
            return _named(refs, TAGS + at.text, at.text)
        case GitRefKind.NAME:
            return _named(refs, at.text, at.text)
        case GitRefKind.RANGE:
            return _highest(at, refs)
        case GitRefKind.COMMIT:
            return _tip(refs, at.text)
        case GitRefKind.ANY:
            return _any(at, refs)


def is_pinned(at: GitRef) -> bool:
    """Whether it is meant to stay the same: a commit, a tag, a version or a range of them."""
    if at.kind is not GitRefKind.ANY:
        return at.kind in (GitRefKind.COMMIT, GitRefKind.TAG, GitRefKind.RANGE)
    known = (read_version(at.text), read_range(at.text))
    return bool(at.text) and (any(known) or is_short_commit(at) or at.text.startswith(TAGS))


def is_range(at: GitRef) -> bool:
    """Whether it means the highest of several tags."""
    if at.kind is GitRefKind.ANY:
        return read_version(at.text) is None and read_range(at.text) is not None
    return at.kind is GitRefKind.RANGE


def branch_name(at: GitRef) -> str:
    """The branch that a ref names, as far as it can be told; empty for HEAD."""
    if at.kind is GitRefKind.HEAD or at.text == "HEAD":
        return ""
    return at.text.removeprefix(HEADS)


def commit_digest(commit: str) -> str:
    return f"{'sha256' if len(commit) == 64 else 'sha1'}:{commit}"  # noqa: PLR2004


def invalid_ref_error(wanted: str, reason: str) -> SourceError:
    return SourceError("source.git.ref", f"`{sanitize(wanted)}` {reason}")


def missing_ref_error(at: GitRef, url: str) -> SourceError:
    kind = "ref" if at.kind is GitRefKind.ANY else at.kind.value
    problem = f"there is no {kind} `{sanitize(str(at))}`"
    if at.kind is GitRefKind.RANGE:
        problem = f"no tag is a version in `{sanitize(at.text)}`"
    return SourceError("source.git.ref.missing", problem, location=Location(redact_password(url)))


def _head(refs: RemoteRefs) -> Revision | None:
    commit = refs.commits.get("HEAD") or refs.commits.get(refs.head)
    name = refs.head.removeprefix(HEADS) or "HEAD"
    return Revision(name, commit_digest(commit)) if commit else None


def _named(refs: RemoteRefs, full: str, name: str) -> Revision | None:
    commit = refs.commits.get(full)
    return Revision(name, commit_digest(commit)) if commit else None


def _highest(at: GitRef, refs: RemoteRefs) -> Revision | None:
    wanted = read_range(at.text)
    start = TAGS + at.prefix
    tags = (name.removeprefix(start) for name in refs.commits if name.startswith(start))
    found = pick_highest(wanted, tags) if wanted else None
    return _named(refs, start + found.text, at.prefix + found.text) if found else None


def _tip(refs: RemoteRefs, beginning: str) -> Revision | None:
    low = beginning.lower()
    commits = {commit for commit in refs.commits.values() if commit.startswith(low)}
    return Revision("", commit_digest(commits.pop())) if len(commits) == 1 else None


def _any(at: GitRef, refs: RemoteRefs) -> Revision | None:
    """A range before a name, a branch before a tag, and a commit last."""
    if at.text in ("", "HEAD"):
        return _head(refs)
    in_range = _highest(at, refs) if read_version(at.text) is None else None
    return (
        in_range
        or _named(refs, HEADS + at.text, at.text)
        or _named(refs, TAGS + at.prefix + at.text, at.prefix + at.text)
        or _named(refs, at.text, at.text)
        or (_tip(refs, at.text) if is_short_commit(at) else None)
    )
