"""Run git for an address, with what opens it, and say in our words why it did not work.

git never asks a terminal, runs no hooks, follows no protocol but those allowed, and finds secrets
in its environment alone: never in an argument, an address or a file that stays.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tidegate.errors import Location, ProcessError, SourceError, sanitize
from tidegate.external.process import MIB, Command, Limits, ProcessResult, run
from tidegate.model.units.source import Credentials
from tidegate.source.credentials import authorization_header
from tidegate.source.options import FetchOptions
from tidegate.source.urls import GitUrl, redact_password

PASSED_ON = ("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_SSH_VARIANT", "XDG_CONFIG_HOME")
ANY_CODE = frozenset(range(256))
MEMORY = 2048 * MIB
SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",  # a repository can name a program here
    "core.autocrlf": "false",
    "core.symlinks": "true",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "init.defaultBranch": "main",
    "protocol.version": "2",
}

# Asked only for the address it is set for, also after a redirect: git sees to that.
CREDENTIAL_HELPER = (
    '!answer() { test "$1" = get || exit 0; '
    'printf "username=%s\\npassword=%s\\n" "$TIDEGATE_GIT_USER" "$TIDEGATE_GIT_PASSWORD"; }; answer'
)


class GitErrorPattern(msgspec.Struct, frozen=True):
    """What git says when something is wrong, and what it is."""

    code: str
    phrases: tuple[str, ...] = ()
    hint: str = ""


ERROR_PATTERNS = (
    GitErrorPattern(
        "source.git.credentials",
        (
            *("authentication failed", "could not read username", "could not read password"),
            *("permission denied", "returned error: 403", "returned error: 401"),
        ),
        hint="set TIDEGATE_TOKEN_<HOST>, use a credential helper of git, or give a Secret",
    ),
    GitErrorPattern(
        "source.git.host-key",
        ("host key verification failed",),
        hint="add the server's key to known_hosts",
    ),
    GitErrorPattern(
        "source.git.unreachable",
        (
            *("could not resolve host", "connection refused", "timed out", "no route to host"),
            *("could not connect", "couldn't connect"),
        ),
    ),
    GitErrorPattern(
        "source.git.untrusted",
        ("ssl certificate", "server certificate", "certificate verif", "gnutls_handshake"),
    ),
    GitErrorPattern(
        "source.git.missing",
        (
            *("repository not found", "not appear to be a git repository", "does not exist"),
            *("returned error: 404", "not found"),
        ),
        hint="check the address; servers also say this when credentials are missing",
    ),
)


class Git(msgspec.Struct, frozen=True):
    """git, set up for one address."""

    url: GitUrl
    variables: Mapping[str, str]
    limits: Limits

    def __repr__(self) -> str:
        return f"Git({self.url.text})"

    async def run(self, *arguments: str, cwd: Path) -> bytes:
        """What git wrote; an error of ours if it gave up."""
        ran = await self.attempt(*arguments, cwd=cwd)
        if ran.exit_code:
            raise git_error(ran, self.url)
        return ran.stdout

    async def attempt(self, *arguments: str, cwd: Path) -> ProcessResult:
        argv = ("git", *arguments)
        command = Command(argv=argv, env=self.variables, cwd=cwd, accepted_codes=ANY_CODE)
        try:
            return await run(command, limits=self.limits)
        except ProcessError as error:
            if error.code != "external.timeout":
                raise
            place = Location(redact_password(self.url.text))
            problem = f"git had no answer within {self.limits.time // 1000} s"
            raise SourceError("source.git.unreachable", problem, location=place) from error


@asynccontextmanager
async def open_git(
    url: GitUrl, access: FetchOptions, *, submodules: bool = False
) -> AsyncIterator[Git]:
    """Set git up, with a home of its own that is gone afterwards."""
    credentials = access.keyring.find(url.origin)
    with tempfile.TemporaryDirectory(prefix="tidegate-git-") as home:
        variables = base_environment(Path(home), access)
        variables["GIT_ALLOW_PROTOCOL"] = ":".join(_protocols(url, access, submodules=submodules))
        settings = dict(SETTINGS)
        settings |= _key_settings(url, credentials, Path(home), access)
        variables |= _ssh_variables(credentials, Path(home), access)
        variables |= _answer_variables(credentials)
        variables |= dict(_numbered(settings))
        yield Git(url, variables, Limits(time=access.patience, memory=MEMORY))


def base_environment(home: Path, access: FetchOptions) -> dict[str, str]:
    """What git always gets. `HOME` stays the user's where the user's settings are wanted."""
    variables = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ASKPASS": "",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
        "LANGUAGE": "",
    }
    if not access.uses_own_git:
        alone = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull}
        return variables | alone
    passed = {name: access.environment[name] for name in PASSED_ON if name in access.environment}
    return variables | passed


def git_error(ran: ProcessResult, url: GitUrl) -> SourceError:
    """git's last words, sorted."""
    words = ran.stderr.decode(errors="replace")
    spoken = [line for line in words.splitlines() if line.strip()]
    said = next((line for line in spoken if line.startswith(("fatal:", "ERROR:"))), "")
    said = (said or (spoken[-1] if spoken else "")).removeprefix("fatal:").strip()
    low = words.lower()
    fitting = (one for one in ERROR_PATTERNS if any(phrase in low for phrase in one.phrases))
    trouble = next(fitting, GitErrorPattern("source.git.failed"))
    problem = f"git could not read the repository: {sanitize(redact_password(said) or 'no reason')}"
    where = Location(redact_password(url.text))
    return SourceError(trouble.code, problem, location=where, hint=trouble.hint)


def _protocols(url: GitUrl, access: FetchOptions, *, submodules: bool) -> Iterator[str]:
    """A redirect may lead from http to https, and a submodule to any network; never to a file."""
    also = {"https"} if url.scheme == "http" else set()
    also |= {"https", "ssh"} if submodules else set()
    return (name for name in sorted({url.scheme, *also} & access.schemes))


def _key_settings(
    url: GitUrl, credentials: Credentials, home: Path, access: FetchOptions
) -> dict[str, str]:
    settings = {}
    if credentials.password is not None and url.scheme in ("http", "https"):
        settings[f"credential.{url.origin}.helper"] = CREDENTIAL_HELPER
    if settings or not access.uses_own_git:
        settings = {"credential.helper": ""} | settings  # none of the user's is asked
    if credentials.token is not None:
        # A header would follow a redirect to another host, a helper's answer does not.
        settings["http.extraHeader"] = f"Authorization: {authorization_header(credentials)}"
        settings["http.followRedirects"] = "false"
    if credentials.ca_certificate:
        settings["http.sslCAInfo"] = _file(home, "authority", credentials.ca_certificate)
    if credentials.certificate and credentials.key is not None:
        settings["http.sslCert"] = _file(home, "certificate", credentials.certificate)
        settings["http.sslKey"] = _file(home, "key", credentials.key.reveal())
    return settings


def _answer_variables(credentials: Credentials) -> dict[str, str]:
    if credentials.password is None:
        return {}
    password = credentials.password.reveal()
    return {"TIDEGATE_GIT_USER": credentials.username, "TIDEGATE_GIT_PASSWORD": password}


def _ssh_variables(credentials: Credentials, home: Path, access: FetchOptions) -> dict[str, str]:
    """How ssh is called. It looks up the home directory itself, whatever HOME says."""
    if credentials.identity is None and access.uses_own_git:
        return {}
    words = ["ssh", "-F", os.devnull, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    if credentials.identity is not None:
        identity = _file(home, "identity", credentials.identity.reveal())
        words += ["-o", "IdentitiesOnly=yes", "-i", identity]
    if credentials.known_hosts:
        known = _file(home, "known_hosts", credentials.known_hosts)
        words += ["-o", f"UserKnownHostsFile={known}"]
    return {"GIT_SSH_COMMAND": shlex.join(words)}


def _file(home: Path, name: str, text: str) -> str:
    path = home / name
    path.touch(mode=0o600)
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    return str(path)


def _numbered(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "GIT_CONFIG_COUNT", str(len(settings))
    for number, (key, value) in enumerate(settings.items()):
        yield f"GIT_CONFIG_KEY_{number}", key
        yield f"GIT_CONFIG_VALUE_{number}", value
