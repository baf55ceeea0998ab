"""Real repositories, and a server for them that runs git's own HTTP backend."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

AUTHOR = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on disk with a working tree."""

    path: Path

    @property
    def url(self) -> str:
        return self.path.as_uri()

    @classmethod
    async def create(cls, path: Path, *options: str) -> Repository:
        made = cls(path)
        made._make_room()
        await made.git("init", "--quiet", "--initial-branch=main", *options)
        return made

    def _make_room(self) -> None:
        self.path.mkdir(parents=True)

    async def git(self, *arguments: str) -> str:
        return (await run_git(*arguments, cwd=self.path, variables=AUTHOR)).decode().strip()

    async def commit(self, **files: str) -> str:
        """Write files (`app__web_yaml` is `app/web.yaml`), commit them; gives the commit."""
        for name, text in files.items():
            path = self.path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        await self.git("add", "--all")
        await self.git("commit", "--quiet", "--allow-empty", "--message=a change")
        return await self.git("rev-parse", "HEAD")


@dataclass(slots=True)
class GitServer:
    """Serves every repository below `root`; with a password, to those who know it."""

    root: Path
    password: str = ""
    requests: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        return app

    async def _serve(self, request: web.Request) -> web.Response:
        self.requests.append(request.path_qs)
        self.seen.append(request.headers.get("Authorization", ""))
        expected = "Basic " + base64.b64encode(f"git:{self.password}".encode()).decode()
        if self.password and self.seen[-1] != expected:
            challenge = {"WWW-Authenticate": 'Basic realm="git"'}
            return web.Response(status=401, headers=challenge)
        variables = {
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        }
        body = await request.read()
        env = {**AUTHOR, **variables}
        return _response(await run_git("http-backend", cwd=self.root, variables=env, stdin=body))


async def run_git(
    *arguments: str, cwd: Path, variables: Mapping[str, str], stdin: bytes = b""
) -> bytes:
    """git without a warden: tests start it often, and it is theirs."""
    pipe = asyncio.subprocess.PIPE
    environment = {"PATH": os.environ["PATH"], **variables}
    started = await asyncio.create_subprocess_exec(
        "git", *arguments, cwd=cwd, env=environment, stdin=pipe, stdout=pipe, stderr=pipe
    )
    written, complaint = await started.communicate(stdin)
    assert started.returncode == 0, complaint.decode()
    return written


def _response(written: bytes) -> web.Response:
    head, _, body = written.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    status = int(headers.pop("Status", "200").split()[0])
    return web.Response(status=status, headers=headers, body=body)
