"""Who we are, at this moment: the headers to send and the certificate to show.

A token file is read again when it changes. An exec plugin is run again shortly before what it gave
expires, and after a server has said no; however many ask at once, it runs once.
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
    Basic,
    ClientCertificate,
    KubeTarget,
    Plugin,
    Token,
    TokenFile,
)
from tidegate.kube.access.plugin import Grant, ask_plugin
from tidegate.kube.access.stanza import read_file
from tidegate.kube.access.users import check_token
from tidegate.model.identity import Identity
from tidegate.model.moment import SECOND, Ms
from tidegate.model.patterns import late
from tidegate.model.secret import Secret

Header: TypeAlias = tuple[str, str]

LEEWAY = Ms(10 * SECOND)
NO_LETTER_OF_A_HEADER = late(rb"[^A-Za-z0-9!#$&'*+.^_`|~-]")


@dataclass(frozen=True, slots=True)
class Auth:
    """What to come with: a header, a certificate, both or neither; and as whom to act."""

    authorization: tuple[Header, ...] = field(repr=False)
    certificate: ClientCertificate | None
    identity: Identity | None

    def headers(self, identity: Identity | None = None) -> tuple[Header, ...]:
        """All headers. Who is given here is impersonated in place of whom the kubeconfig names."""
        whom = identity or self.identity
        return self.authorization + (impersonate(whom) if whom else ())


class AuthSource(Protocol):
    """Where the `Auth` for one target comes from. Ask it before each request."""

    async def current(self) -> Auth:
        """What to send now."""
        ...

    async def refresh(self, used: Auth) -> Auth:
        """What to send after a server refused `used`: the same where there is nothing newer."""
        ...


def auth_source(
    target: KubeTarget,
    *,
    now: Callable[[], Ms] | None = None,
    has_terminal: Callable[[], bool] | None = None,
) -> AuthSource:
    match target.login:
        case Plugin() as plugin:
            asks = has_terminal or _stdin_is_terminal
            return _PluginSource(target, plugin, now or _wall_clock, asks)
        case TokenFile() as file:
            return _FileSource(target, file)
        case login:
            return _FixedSource(target, login)


class _FixedSource:
    """What stands in the kubeconfig does not change."""

    def __init__(self, target: KubeTarget, login: Anonymous | Token | Basic) -> None:
        self._auth = Auth(_headers_of(login), target.certificate, target.identity)

    async def current(self) -> Auth:
        return self._auth

    async def refresh(self, used: Auth) -> Auth:
        del used
        return self._auth


class _FileSource:
    """A token that somebody renews. While it cannot be read, the last one serves on."""

    def __init__(self, target: KubeTarget, file: TokenFile) -> None:
        self._target = target
        self._file = file
        self._seen: tuple[int, int, int] | None = None
        self._auth: Auth | None = None

    async def current(self) -> Auth:
        """Look whether the file has changed, which costs microseconds, and read it if so."""
        seen = self._stamp()
        if self._auth is None or seen != self._seen:
            self._auth, self._seen = self._read(), seen
        return self._auth

    async def refresh(self, used: Auth) -> Auth:
        del used
        self._auth = self._read()
        return self._auth

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._file.path)  # noqa: PTH116  (half the price, before each request)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _read(self) -> Auth:
        try:
            token = _read_token(self._file, f"user `{self._target.user}`")
        except ConfigError:
            if self._auth is not None:
                return self._auth
            if self._file.spare is None:
                raise
            token = self._file.spare
        auth = Auth((_bearer(token),), self._target.certificate, self._target.identity)
        return self._auth if self._auth == auth else auth


class _PluginSource:
    """What a plugin gives, kept until shortly before it expires."""

    def __init__(
        self,
        target: KubeTarget,
        plugin: Plugin,
        now: Callable[[], Ms],
        has_terminal: Callable[[], bool],
    ) -> None:
        self._target = target
        self._plugin = plugin
        self._now = now
        self._has_terminal = has_terminal
        self._turn = asyncio.Lock()
        self._runs = 0
        self._auth: Auth | None = None
        self._stale_at: Ms | None = None
        self._failure: TidegateError | None = None

    async def current(self) -> Auth:
        fresh = self._fresh()
        return fresh if fresh is not None else await self._share(used=None)

    async def refresh(self, used: Auth) -> Auth:
        return await self._share(used)

    def _fresh(self) -> Auth | None:
        is_stale = self._stale_at is not None and self._now() >= self._stale_at
        return None if is_stale else self._auth

    async def _share(self, used: Auth | None) -> Auth:
        """One run at a time. Who waited for it takes what came of it, be it an error."""
        came = self._runs
        async with self._turn:
            fresh = self._fresh()
            if self._runs != came and self._failure is not None:
                raise self._failure
            if fresh is not None and (self._runs != came or fresh is not used):
                return fresh
            return await self._run()

    async def _run(self) -> Auth:
        self._failure = None
        try:
            grant = await ask_plugin(self._plugin, has_terminal=self._has_terminal())
        except TidegateError as error:
            self._failure = error
            self._runs += 1
            raise
        self._runs += 1
        headers = (_bearer(grant.token),) if grant.token else ()
        self._stale_at = self._end_of(grant)
        auth = Auth(headers, grant.certificate, self._target.identity)
        self._auth = self._auth if self._auth == auth else auth
        return self._auth

    def _end_of(self, grant: Grant) -> Ms | None:
        """A little before the end, and only a little of what is left: plugins have caches, too."""
        if grant.expires is None:
            return None
        left = max(0, grant.expires - self._now())
        return Ms(grant.expires - min(LEEWAY, left // 10))


def impersonate(identity: Identity) -> tuple[Header, ...]:
    """The headers that ask for somebody else's rights."""
    headers = [("Impersonate-User", identity.user)]
    if identity.uid:
        headers.append(("Impersonate-Uid", identity.uid))
    headers += [("Impersonate-Group", group) for group in identity.groups]
    headers += [(f"Impersonate-Extra-{_escape(key)}", text) for key, text in identity.extra]
    return tuple(headers)


def _escape(key: str) -> str:
    """A name as part of a header's name."""
    escaped = NO_LETTER_OF_A_HEADER.sub(lambda found: b"%%%02X" % found[0][0], key.encode())
    return escaped.decode("ascii")


def _headers_of(login: Anonymous | Token | Basic) -> tuple[Header, ...]:
    match login:
        case Anonymous():
            return ()
        case Token(token=token):
            return (_bearer(token),)
        case Basic(username=username, password=password):
            pair = f"{username}:{password.reveal()}".encode()
            return (("Authorization", f"Basic {base64.b64encode(pair).decode()}"),)


def _bearer(token: Secret) -> Header:
    return "Authorization", f"Bearer {token.reveal()}"


def _read_token(file: TokenFile, title: str) -> Secret:
    token = read_file(file.path, file.place).decode(errors="replace").strip()
    if wrong := check_token(token, title):
        hint = f"look at `{file.path}`"
        raise ConfigError("config.token", wrong, where=file.place, hint=hint)
    return Secret(token)


def _wall_clock() -> Ms:
    return Ms(time.time_ns() // 1_000_000)


def _stdin_is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
