"""Archives made in memory: good ones, and those that a stranger would send."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class TarMaker:
    """A tar, entry by entry."""

    _buffer: io.BytesIO = field(default_factory=io.BytesIO)

    def add(self, name: str, content: bytes = b"", *, kind: bytes = tarfile.REGTYPE) -> TarMaker:
        entry = tarfile.TarInfo(name)
        entry.type = kind
        entry.size = len(content)
        self._buffer.write(entry.tobuf(tarfile.GNU_FORMAT))
        self._buffer.write(content + bytes(-len(content) % 512))
        return self

    def link(self, name: str, target: str, *, kind: bytes = tarfile.SYMTYPE) -> TarMaker:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, target
        self._buffer.write(entry.tobuf(tarfile.GNU_FORMAT))
        return self

    def raw(self, content: bytes) -> TarMaker:
        self._buffer.write(content)
        return self

    def tar(self) -> bytes:
        return self._buffer.getvalue() + bytes(1024)

    def gz(self) -> bytes:
        return gzip.compress(self.tar(), mtime=0)


def a_chart(name: str = "web", version: str = "1.0.0") -> bytes:
    """A packed chart of two files."""
    maker = TarMaker()
    maker.add(f"{name}/Chart.yaml", f"apiVersion: v2\nname: {name}\nversion: {version}\n".encode())
    maker.add(f"{name}/templates/service.yaml", b"kind: Service\n")
    return maker.gz()


def a_zip(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()
