"""A web server's files, charts among them, and what it was asked for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.chart_archives import TarMaker

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"


def packed(name: str, version: str = "1.2.0") -> bytes:
    """A chart with one ConfigMap of its name."""
    maker = TarMaker()
    maker.add(f"{name}/Chart.yaml", f"apiVersion: v2\nname: {name}\nversion: {version}\n".encode())
    maker.add(f"{name}/values.yaml", b"{}\n")
    maker.add(f"{name}/templates/config.yaml", CONFIG.format(name=name).encode())
    return maker.gz()


@dataclass(slots=True)
class Files:
    """A web server's files, and what it was asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def add_chart(self, name: str, *, digest: str = "") -> None:
        chart = packed(name)
        digest = digest or hashlib.sha256(chart).hexdigest()
        entry = f"{{version: 1.2.0, urls: [{name}.tgz], digest: '{digest}'}}"
        self.files[f"/{name}.tgz"] = chart
        self.files["/index.yaml"] = f"apiVersion: v1\nentries:\n  {name}: [{entry}]\n".encode()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._serve)
        return app

    async def _serve(self, request: web.Request) -> web.Response:
        self.requests.append(request.path)
        body = self.files.get(request.path)
        return web.Response(status=404) if body is None else web.Response(body=body)
