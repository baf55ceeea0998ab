"""Current credentials: the headers to send and the client certificate to present.

A token file is read again when it changes. An exec plugin runs again shortly before its
credentials expire, and after the server has rejected them; concurrent callers share one run.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from tidegate.errors import ConfigError, TidegateError
from tidegate.kube.access.context import (
    Anonymous,
    BasicAuth,
    BearerToken,
    ClientCertificate,
    ExecPlugin,
    KubeTarget,
    TokenFile,
)
from tidegate.kube.access.entries import read_file
from tidegate.kube.access.plugin import ExecCredential, run_plugin
from tidegate.kube.access.users import check_token
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.identity import ImpersonatedUser

Header: TypeAlias = tuple[str, str]
EXPIRY_MARGIN = Ms(10 * SECOND)
INVALID_HEADER_CHARACTER = lazy_regex(rb"[^A-Za-z0-9!#$&'*+.^_`|~-]")


@dataclass(frozen=True, slots=True)
class Auth:
    """Credentials of a request: a header, a certificate, both or neither; and the impersonated
    user.
    """

    authorization: tuple[Header, ...] = field(repr=False)
    """Headers with credentials."""
    certificate: ClientCertificate | None
    """The client certificate; None for none."""
    identity: ImpersonatedUser | None
    """The impersonated user of the kubeconfig; None for none."""

    def headers(self, identity: ImpersonatedUser | None = None) -> tuple[Header, ...]:
        """Return all headers. `identity` replaces the impersonated user of the kubeconfig."""
        user = identity or self.identity
        return self.authorization + (impersonation_headers(user) if user else ())


class AuthSource(Protocol):
    """A source of the `Auth` for one target. Call it before each request."""

    async def current(self) -> Auth:
        """Return the credentials to send now."""
        ...

    async def refresh(self, used: Auth) -> Auth:
        """Return the credentials to send after a server rejected `used`.

        Returns `used` if there are none newer.
        """
        ...


def make_auth_source(
    target: KubeTarget,
    *,
    now: Callable[[], Ms] | None = None,
    has_terminal: Callable[[], bool] | None = None,
) -> AuthSource:
    """Return the source of credentials for a target."""
    match target.login:
        case ExecPlugin() as plugin:
            terminal_check = has_terminal or _stdin_is_terminal
            return _PluginSource(target, plugin, now or _wall_clock, terminal_check)
        case TokenFile() as file:
            return _TokenFileSource(target, file)
        case login:
            return _StaticSource(target, login)


class _StaticSource:
    """Credentials of the kubeconfig, which do not change."""

    def __init__(self, target: KubeTarget, login: Anonymous | BearerToken | BasicAuth) -> None:
        self._auth = Auth(_authorization_headers(login), target.certificate, target.identity)

    async def current(self) -> Auth:
        return self._auth

    async def refresh(self, used: Auth) -> Auth:
        del used
        return self._auth


class _TokenFileSource:
    """A token file that another process renews. The last token is used while it cannot be read.

    Like `NewCachedFileTokenSource` in `transport/token_source.go` of k8s.io/client-go 0.36.4.
    """

    def __init__(self, target: KubeTarget, file: TokenFile) -> None:
        self._target = target
        self._file = file
        self._last_stamp: tuple[int, int, int] | None = None
        self._auth: Auth | None = None

    async def current(self) -> Auth:
        """Read the file again if it has changed. The check costs microseconds."""
        stamp = self._file_stamp()
        if self._auth is None or stamp != self._last_stamp:
            self._auth, self._last_stamp = self._read(), stamp
        return self._auth

    async def refresh(self, used: Auth) -> Auth:
        del used
        self._auth = self._read()
        return self._auth

    def _file_stamp(self) -> tuple[int, int, int] | None:
        """Return modification time, inode and size of the file, or None if it does not exist."""
        try:
            stat = os.stat(self._file.path)  # noqa: PTH116  (half the price, before each request)
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_ino, stat.st_size

    def _read(self) -> Auth:
        try:
            token = _read_token(self._file, f"user `{self._target.user}`")
        except ConfigError:
            if self._auth is not None:
                return self._auth
            if self._file.fallback is None:
                raise
            token = self._file.fallback
        auth = Auth((_bearer(token),), self._target.certificate, self._target.identity)
        return self._auth if self._auth == auth else auth


class _PluginSource:
    """Credentials of an exec plugin, cached until shortly before they expire.

    Like `getCreds` and `maybeRefreshCreds` in `plugin/pkg/client/auth/exec/exec.go` of
    k8s.io/client-go 0.36.4.
    """

    def __init__(
        self,
        target: KubeTarget,
        plugin: ExecPlugin,
        now: Callable[[], Ms],
        has_terminal: Callable[[], bool],
    ) -> None:
        self._target = target
        self._plugin = plugin
        self._now = now
        self._has_terminal = has_terminal
        self._lock = asyncio.Lock()
        self._runs = 0
        self._auth: Auth | None = None
        self._stale_at: Ms | None = None
        self._failure: TidegateError | None = None

    async def current(self) -> Auth:
        fresh = self._fresh()
        return fresh if fresh is not None else await self._run_shared(used=None)

    async def refresh(self, used: Auth) -> Auth:
        return await self._run_shared(used)

    def _fresh(self) -> Auth | None:
        is_stale = self._stale_at is not None and self._now() >= self._stale_at
        return None if is_stale else self._auth

    async def _run_shared(self, used: Auth | None) -> Auth:
        """Run the plugin, one run at a time. Waiting callers share the result or the error."""
        runs_before = self._runs
        async with self._lock:
            fresh = self._fresh()
            if self._runs != runs_before and self._failure is not None:
                raise self._failure
            if fresh is not None and (self._runs != runs_before or fresh is not used):
                return fresh
            return await self._run()

    async def _run(self) -> Auth:
        self._failure = None
        try:
            credential = await run_plugin(self._plugin, has_terminal=self._has_terminal())
        except TidegateError as error:
            self._failure = error
            self._runs += 1
            raise
        self._runs += 1
        headers = (_bearer(credential.token),) if credential.token else ()
        self._stale_at = self._refresh_time(credential)
        auth = Auth(headers, credential.certificate, self._target.identity)
        self._auth = self._auth if self._auth == auth else auth
        return self._auth

    def _refresh_time(self, credential: ExecCredential) -> Ms | None:
        """Return when to run the plugin again: shortly before the expiry.

        The margin is small, since plugins have caches, too.
        """
        if credential.expires is None:
            return None
        remaining = max(0, credential.expires - self._now())
        return Ms(credential.expires - min(EXPIRY_MARGIN, remaining // 10))


def impersonation_headers(identity: ImpersonatedUser) -> tuple[Header, ...]:
    """Return the headers that impersonate a user.

    Like `NewImpersonatingRoundTripper` in `transport/round_trippers.go` of k8s.io/client-go 0.36.4.
    """
    headers = [("Impersonate-User", identity.user)]
    if identity.uid:
        headers.append(("Impersonate-Uid", identity.uid))
    headers += [("Impersonate-Group", group) for group in identity.groups]
    headers += [
        (f"Impersonate-Extra-{_escape_header_name(key)}", text) for key, text in identity.extra
    ]
    return tuple(headers)


def _escape_header_name(key: str) -> str:
    """Escape a key as part of a header name.

    Like `headerKeyEscape` in `transport/round_trippers.go` of k8s.io/client-go 0.36.4.
    """
    escaped = INVALID_HEADER_CHARACTER.sub(lambda match: b"%%%02X" % match[0][0], key.encode())
    return escaped.decode("ascii")


def _authorization_headers(login: Anonymous | BearerToken | BasicAuth) -> tuple[Header, ...]:
    match login:
        case Anonymous():
            return ()
        case BearerToken(token=token):
            return (_bearer(token),)
        case BasicAuth(username=username, password=password):
            pair = f"{username}:{password.reveal()}".encode()
            return (("Authorization", f"Basic {base64.b64encode(pair).decode()}"),)


def _bearer(token: SecretValue) -> Header:
    return "Authorization", f"Bearer {token.reveal()}"


def _read_token(file: TokenFile, title: str) -> SecretValue:
    token = read_file(file.path, file.location).decode(errors="replace").strip()
    if problem := check_token(token, title):
        hint = f"check `{file.path}`"
        raise ConfigError("config.token", problem, location=file.location, hint=hint)
    return SecretValue(token)


def _wall_clock() -> Ms:
    return Ms(time.time_ns() // 1_000_000)


def _stdin_is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
