"""Choice of a commit among the refs of a repository, without network access."""

from __future__ import annotations

import re

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import GitRef, GitRefKind, Revision
from tidegate.source.semver import pick_highest, read_range, read_version, require_range
from tidegate.source.urls import redact_password

HEADS, TAGS, PEELED = "refs/heads/", "refs/tags/", "^{}"
_FULL_COMMIT = lazy_regex(r"(?:[0-9a-f]{40}|[0-9a-f]{64})", re.IGNORECASE)
_COMMIT_PREFIX = lazy_regex(r"[0-9a-f]{4,64}", re.IGNORECASE)
_FORBIDDEN_IN_REF = lazy_regex(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(?:/|$)|^[-/.]|[/.]$")


class RemoteRefs(msgspec.Struct, frozen=True):
    """The refs of a repository."""

    head: str
    """Full name of the default branch."""
    commits: dict[str, str]
    """Commit of each ref."""


def read_remote_refs(output: bytes) -> RemoteRefs:
    """Read the output of `git ls-remote --symref`. An annotated tag counts as its commit."""
    head, commits = "", {}
    for line in output.decode(errors="surrogateescape").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: "):
            head = value.removeprefix("ref: ") if name == "HEAD" else head
        elif name.endswith(PEELED):
            commits[name.removesuffix(PEELED)] = value
        else:
            commits[name] = value
    return RemoteRefs(head, commits)


def check_ref(ref: GitRef) -> None:
    """Raise SourceError if a ref is invalid, before git runs."""
    text = ref.text
    match ref.kind:
        case GitRefKind.HEAD:
            return
        case GitRefKind.RANGE:
            require_range(text)
        case GitRefKind.COMMIT if not _COMMIT_PREFIX.fullmatch(text):
            raise invalid_ref_error(text, "is not a hexadecimal commit hash")
        case GitRefKind.ANY if read_range(text) is not None or not text:
            return
        case _ if not text or _FORBIDDEN_IN_REF.search(text):
            raise invalid_ref_error(text, "is not a valid branch, tag or commit")
        case _:
            return


def full_commit(ref: GitRef) -> Revision | None:
    """Return the revision of a full commit hash; None for any other ref."""
    if ref.kind in (GitRefKind.COMMIT, GitRefKind.ANY) and _FULL_COMMIT.fullmatch(ref.text):
        return Revision("", commit_digest(ref.text.lower()))
    return None


def is_short_commit(ref: GitRef) -> bool:
    """Return whether a ref can be an abbreviated commit.

    Like `IsTruncatedCommitSHA` in `util/git/git.go` of Argo CD 3.5.6.
    """
    return ref.kind in (GitRefKind.COMMIT, GitRefKind.ANY) and bool(
        _COMMIT_PREFIX.fullmatch(ref.text)
    )


def choose_commit(ref: GitRef, refs: RemoteRefs) -> Revision | None:
    """Return the commit that a ref means now; None if there is no such ref."""
    match ref.kind:
        case GitRefKind.HEAD:
            return _head_revision(refs)
        case GitRefKind.BRANCH:
            return _named_revision(refs, HEADS + ref.text, ref.text)
        case GitRefKind.TAG:
            return _named_revision(refs, TAGS + ref.text, ref.text)
        case GitRefKind.NAME:
            return _named_revision(refs, ref.text, ref.text)
        case GitRefKind.RANGE:
            return _highest_tag(ref, refs)
        case GitRefKind.COMMIT:
            return _ref_by_commit(refs, ref.text)
        case GitRefKind.ANY:
            return _any_revision(ref, refs)


def is_pinned(ref: GitRef) -> bool:
    """Return whether a ref is a commit, a tag, a version or a version range."""
    if ref.kind is not GitRefKind.ANY:
        return ref.kind in (GitRefKind.COMMIT, GitRefKind.TAG, GitRefKind.RANGE)
    parsed = (read_version(ref.text), read_range(ref.text))
    return bool(ref.text) and (any(parsed) or is_short_commit(ref) or ref.text.startswith(TAGS))


def is_range(ref: GitRef) -> bool:
    """Return whether a ref means the highest of several tags."""
    if ref.kind is GitRefKind.ANY:
        return read_version(ref.text) is None and read_range(ref.text) is not None
    return ref.kind is GitRefKind.RANGE


def branch_name(ref: GitRef) -> str:
    """Return the branch that a ref names; empty for HEAD."""
    if ref.kind is GitRefKind.HEAD or ref.text == "HEAD":
        return ""
    return ref.text.removeprefix(HEADS)


def commit_digest(commit: str) -> str:
    """Return a commit with its hash algorithm, such as `sha1:…`."""
    return f"{'sha256' if len(commit) == 64 else 'sha1'}:{commit}"  # noqa: PLR2004


def invalid_ref_error(ref: str, reason: str) -> SourceError:
    """Return the error for an invalid ref."""
    return SourceError("source.git.ref", f"`{sanitize(ref)}` {reason}")


def missing_ref_error(ref: GitRef, url: str) -> SourceError:
    """Return the error for a ref that the repository does not have."""
    kind = "ref" if ref.kind is GitRefKind.ANY else ref.kind.value
    problem = f"{kind} `{sanitize(str(ref))}` not found"
    if ref.kind is GitRefKind.RANGE:
        problem = f"no tag matches the version range `{sanitize(ref.text)}`"
    return SourceError("source.git.ref.missing", problem, location=Location(redact_password(url)))


def _head_revision(refs: RemoteRefs) -> Revision | None:
    commit = refs.commits.get("HEAD") or refs.commits.get(refs.head)
    name = refs.head.removeprefix(HEADS) or "HEAD"
    return Revision(name, commit_digest(commit)) if commit else None


def _named_revision(refs: RemoteRefs, full: str, name: str) -> Revision | None:
    commit = refs.commits.get(full)
    return Revision(name, commit_digest(commit)) if commit else None


def _highest_tag(ref: GitRef, refs: RemoteRefs) -> Revision | None:
    version_range = read_range(ref.text)
    prefix = TAGS + ref.prefix
    tags = (name.removeprefix(prefix) for name in refs.commits if name.startswith(prefix))
    highest = pick_highest(version_range, tags) if version_range else None
    return (
        _named_revision(refs, prefix + highest.text, ref.prefix + highest.text) if highest else None
    )


def _ref_by_commit(refs: RemoteRefs, prefix: str) -> Revision | None:
    lowered = prefix.lower()
    commits = {commit for commit in refs.commits.values() if commit.startswith(lowered)}
    return Revision("", commit_digest(commits.pop())) if len(commits) == 1 else None


def _any_revision(ref: GitRef, refs: RemoteRefs) -> Revision | None:
    """Return the revision of a ref of unknown kind: range, branch, tag, then commit.

    Like `lsRemote` in `util/git/client.go` of Argo CD 3.5.6.
    """
    if ref.text in ("", "HEAD"):
        return _head_revision(refs)
    in_range = _highest_tag(ref, refs) if read_version(ref.text) is None else None
    return (
        in_range
        or _named_revision(refs, HEADS + ref.text, ref.text)
        or _named_revision(refs, TAGS + ref.prefix + ref.text, ref.prefix + ref.text)
        or _named_revision(refs, ref.text, ref.text)
        or (_ref_by_commit(refs, ref.text) if is_short_commit(ref) else None)
    )
