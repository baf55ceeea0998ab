"""A small OCI registry in memory: tags in pages, manifests, blobs with a redirect, tokens."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field

from aiohttp import web


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass(slots=True)
class FakeRegistry:
    """Holds one repository, `charts/web`. With a password it asks for a token."""

    password: str = ""
    tags: dict[str, bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    storage: str = ""
    """Where blobs are: elsewhere, if given."""

    def push(self, tag: str, layer: bytes, media_type: str) -> str:
        """Gives the digest of the manifest."""
        described = {"mediaType": media_type, "digest": digest_of(layer), "size": len(layer)}
        manifest = json.dumps({"schemaVersion": 2, "layers": [described]}).encode()
        self.blobs[digest_of(layer)] = layer
        self.tags[tag] = manifest
        return digest_of(manifest)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/token", self._token)
        app.router.add_get("/v2/charts/web/tags/list", self._list)
        app.router.add_get("/v2/charts/web/manifests/{ref}", self._manifest)
        app.router.add_get("/v2/charts/web/blobs/{digest}", self._blob)
        return app

    def _refusal(self, request: web.Request) -> web.Response | None:
        secret = request.headers.get("Authorization", "")
        self.requests.append((request.path, secret))
        if not self.password or secret == "Bearer let-me-in":
            return None
        realm = f"http://{request.host}/token"
        challenge = f'Bearer realm="{realm}",service="here",scope="repository:charts/web:pull"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    async def _token(self, request: web.Request) -> web.Response:
        secret = request.headers.get("Authorization", "")
        self.requests.append((request.path_qs, secret))
        pair = base64.b64encode(f"ann:{self.password}".encode()).decode()
        if secret != f"Basic {pair}":
            return web.Response(status=401)
        return web.json_response({"token": "let-me-in"})

    async def _list(self, request: web.Request) -> web.Response:
        if (refused := self._refusal(request)) is not None:
            return refused
        names = sorted(self.tags)
        start = int(request.query.get("last", "0"))
        headers = {}
        if start + 2 < len(names):
            headers["Link"] = f'</v2/charts/web/tags/list?last={start + 2}>; rel="next"'
        return web.json_response({"tags": names[start : start + 2]}, headers=headers)

    async def _manifest(self, request: web.Request) -> web.Response:
        if (refused := self._refusal(request)) is not None:
            return refused
        expected = request.match_info["ref"]
        by_digest = {digest_of(body): body for body in self.tags.values()}
        body = self.tags.get(expected) or by_digest.get(expected)
        return web.Response(body=body) if body else web.Response(status=404)

    async def _blob(self, request: web.Request) -> web.Response:
        if (refused := self._refusal(request)) is not None:
            return refused
        digest = request.match_info["digest"]
        if self.storage:
            raise web.HTTPTemporaryRedirect(f"{self.storage}/{digest}")
        return web.Response(body=self.blobs[digest])
