"""The git program, set up for one address, and its errors.

git never prompts on a terminal, runs no hooks, and uses only the allowed protocols. It gets secrets
only through its environment: never in an argument, an address or a file that stays.
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

PASSED_VARIABLES = (
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_SSH_VARIANT",
    "XDG_CONFIG_HOME",
)
ANY_EXIT_CODE = frozenset(range(256))
MEMORY_LIMIT = 2048 * MIB
SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",  # a repository could name a program here
    "core.autocrlf": "false",
    "core.symlinks": "true",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "init.defaultBranch": "main",
    "protocol.version": "2",
}

# git asks the helper only for the address that it is set for, also after a redirect.
CREDENTIAL_HELPER = (
    '!answer() { test "$1" = get || exit 0; '
    'printf "username=%s\\npassword=%s\\n" "$TIDEGATE_GIT_USER" "$TIDEGATE_GIT_PASSWORD"; }; answer'
)


class GitErrorPattern(msgspec.Struct, frozen=True):
    """Phrases of git's error output, and the error that they mean."""

    code: str
    """Error code."""
    phrases: tuple[str, ...] = ()
    """Phrases of git's error output."""
    hint: str = ""
    """Hint for the user."""


ERROR_PATTERNS = (
    GitErrorPattern(
        "source.git.credentials",
        (
            *("authentication failed", "could not read username", "could not read password"),
            *("permission denied", "returned error: 403", "returned error: 401"),
        ),
        hint="set TIDEGATE_TOKEN_<HOST>, use a git credential helper, or provide a Secret",
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
        hint="check the URL; servers also answer this if credentials are missing",
    ),
)


class Git(msgspec.Struct, frozen=True):
    """git, set up for one address."""

    url: GitUrl
    """The address."""
    variables: Mapping[str, str]
    """The environment of git."""
    limits: Limits
    """Limits of the program."""

    def __repr__(self) -> str:
        return f"Git({self.url.text})"

    async def run(self, *arguments: str, cwd: Path) -> bytes:
        """Run git and return its output.

        Raises SourceError if git fails.
        """
        result = await self.try_run(*arguments, cwd=cwd)
        if result.exit_code:
            raise git_error(result, self.url)
        return result.stdout

    async def try_run(self, *arguments: str, cwd: Path) -> ProcessResult:
        """Run git and return the result, also if git fails."""
        argv = ("git", *arguments)
        command = Command(argv=argv, env=self.variables, cwd=cwd, accepted_codes=ANY_EXIT_CODE)
        try:
            return await run(command, limits=self.limits)
        except ProcessError as error:
            if error.code != "external.timeout":
                raise
            location = Location(redact_password(self.url.text))
            problem = f"git timed out after {self.limits.time // 1000}s"
            raise SourceError("source.git.unreachable", problem, location=location) from error


@asynccontextmanager
async def open_git(
    url: GitUrl, options: FetchOptions, *, submodules: bool = False
) -> AsyncIterator[Git]:
    """Set git up, with a home directory that is removed afterwards."""
    credentials = options.credentials.find(url.origin)
    with tempfile.TemporaryDirectory(prefix="tidegate-git-") as git_home:
        variables = base_environment(Path(git_home), options)
        variables["GIT_ALLOW_PROTOCOL"] = ":".join(
            _allowed_protocols(url, options, submodules=submodules)
        )
        settings = dict(SETTINGS)
        settings |= _credential_settings(url, credentials, Path(git_home), options)
        variables |= _ssh_variables(credentials, Path(git_home), options)
        variables |= _password_variables(credentials)
        variables |= dict(_config_variables(settings))
        yield Git(url, variables, Limits(time=options.timeout, memory=MEMORY_LIMIT))


def base_environment(git_home: Path, options: FetchOptions) -> dict[str, str]:
    """Return the variables that git always gets.

    `HOME` stays the user's if the user's configuration is used.
    """
    variables = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ASKPASS": "",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
        "LANGUAGE": "",
    }
    if not options.use_user_git_config:
        isolated = {
            "HOME": str(git_home),
            "XDG_CONFIG_HOME": str(git_home),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        return variables | isolated
    passed = {
        name: options.environment[name] for name in PASSED_VARIABLES if name in options.environment
    }
    return variables | passed


def git_error(result: ProcessResult, url: GitUrl) -> SourceError:
    """Return the error for a failed run of git."""
    output = result.stderr.decode(errors="replace")
    lines = [line for line in output.splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith(("fatal:", "ERROR:"))), "")
    reason = (reason or (lines[-1] if lines else "")).removeprefix("fatal:").strip()
    lowered = output.lower()
    matches = (
        pattern
        for pattern in ERROR_PATTERNS
        if any(phrase in lowered for phrase in pattern.phrases)
    )
    pattern = next(matches, GitErrorPattern("source.git.failed"))
    problem = f"git cannot read the repository: {sanitize(redact_password(reason) or 'no reason')}"
    location = Location(redact_password(url.text))
    return SourceError(pattern.code, problem, location=location, hint=pattern.hint)


def _allowed_protocols(url: GitUrl, options: FetchOptions, *, submodules: bool) -> Iterator[str]:
    """Return the protocols that git may use, also after redirects and for submodules."""
    further = {"https"} if url.scheme == "http" else set()
    further |= {"https", "ssh"} if submodules else set()
    return (name for name in sorted({url.scheme, *further} & options.schemes))


def _credential_settings(
    url: GitUrl, credentials: Credentials, git_home: Path, options: FetchOptions
) -> dict[str, str]:
    settings = {}
    if credentials.password is not None and url.scheme in ("http", "https"):
        settings[f"credential.{url.origin}.helper"] = CREDENTIAL_HELPER
    if settings or not options.use_user_git_config:
        settings = {"credential.helper": ""} | settings  # no credential helper of the user is used
    if credentials.token is not None:
        # git would send the header also after a redirect to another host.
        settings["http.extraHeader"] = f"Authorization: {authorization_header(credentials)}"
        settings["http.followRedirects"] = "false"
    if credentials.ca_certificate:
        settings["http.sslCAInfo"] = _write_secret_file(
            git_home, "authority", credentials.ca_certificate
        )
    if credentials.certificate and credentials.key is not None:
        settings["http.sslCert"] = _write_secret_file(
            git_home, "certificate", credentials.certificate
        )
        settings["http.sslKey"] = _write_secret_file(git_home, "key", credentials.key.reveal())
    return settings


def _password_variables(credentials: Credentials) -> dict[str, str]:
    if credentials.password is None:
        return {}
    password = credentials.password.reveal()
    return {"TIDEGATE_GIT_USER": credentials.username, "TIDEGATE_GIT_PASSWORD": password}


def _ssh_variables(
    credentials: Credentials, git_home: Path, options: FetchOptions
) -> dict[str, str]:
    """Return how git calls ssh. ssh looks up the home directory itself and ignores HOME."""
    if credentials.identity is None and options.use_user_git_config:
        return {}
    command = ["ssh", "-F", os.devnull, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    if credentials.identity is not None:
        identity = _write_secret_file(git_home, "identity", credentials.identity.reveal())
        command += ["-o", "IdentitiesOnly=yes", "-i", identity]
    if credentials.known_hosts:
        known_hosts = _write_secret_file(git_home, "known_hosts", credentials.known_hosts)
        command += ["-o", f"UserKnownHostsFile={known_hosts}"]
    return {"GIT_SSH_COMMAND": shlex.join(command)}


def _write_secret_file(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.touch(mode=0o600)
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    return str(path)


def _config_variables(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "GIT_CONFIG_COUNT", str(len(settings))
    for number, (key, value) in enumerate(settings.items()):
        yield f"GIT_CONFIG_KEY_{number}", key
        yield f"GIT_CONFIG_VALUE_{number}", value
