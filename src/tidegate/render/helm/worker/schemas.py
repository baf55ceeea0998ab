"""References of value schemas (`values.schema.json`) to documents outside of the chart.

Helm would read `file:` references from this machine and fetch `http:` references, also from
loopback. The schemas that Helm gets only refer to themselves: a chart with a reference to a file
is refused, and what is on a server is not checked. Runs in the worker.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import msgspec

from tidegate.errors import Location, RenderError, sanitize
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.helm.worker import sdk
from tidegate.render.helm.worker.files import MAX_CHART_SIZE

SCHEMA = "values.schema.json"
ARCHIVE = ".tgz"
BASE = f"file:///{SCHEMA}"
"""The URL of a schema, like in `pkg/chart/common/util/jsonschema.go` of Helm 4.2.4."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
UNCHECKED_SCHEMES = frozenset({"http", "https", "urn"})
METASCHEMA = lazy_regex(
    r"https?://json-schema\.org/((draft-0[467]|draft/2019-09|draft/2020-12)/)?schema#?"
)
"""The URLs of the metaschemas that Helm knows without a request."""
OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")
"""Drafts in which a reference replaces the other keywords of its schema."""


def refers_outside(chart: Path, location: Location) -> bool:
    """Return whether a schema of a chart or subchart refers to a server.

    Raises RenderError for a reference to a file.
    """
    with tempfile.TemporaryDirectory(prefix="schemas-") as scratch:
        directory = chart
        if chart.is_file():
            if not _may_have_schema(chart):
                return False
            directory = Path(scratch)
            sdk.unpack(chart, directory)
        confined = [_confined(file, location) is not None for file in _files(directory, SCHEMA)]
        archives = [archive for archive in _files(directory, ARCHIVE) if _is_subchart(archive)]
        return any(confined) or any(refers_outside(archive, location) for archive in archives)


def confine_schemas(copy: Path, location: Location) -> None:
    """Remove references to servers from the schemas of a copied chart and its subcharts."""
    archives = [archive for archive in _files(copy, ARCHIVE) if _is_subchart(archive)]
    for archive in archives:
        if refers_outside(archive, location):
            with tempfile.TemporaryDirectory(dir=archive.parent.parent) as scratch:
                sdk.unpack(archive, Path(scratch))
                (unpacked,) = Path(scratch).iterdir()
                confine_schemas(unpacked, location)
                archive.unlink()
                unpacked.rename(archive.with_name(archive.name.removesuffix(ARCHIVE)))
    for file in _files(copy, SCHEMA):
        confined = _confined(file, location)
        if confined is not None:
            file.write_bytes(confined)


def _confined(file: Path, location: Location) -> bytes | None:
    """Return a schema without references to servers; None if it has none."""
    try:
        schema: Json = msgspec.json.decode(file.read_bytes())
        return _confine(schema, location)
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        problem = f"cannot read the schema of the values: {sanitize(reason)}"
        raise RenderError("render.helm.schema", problem, location=location) from None


def _confine(schema: Json, location: Location) -> bytes | None:
    if not isinstance(schema, dict):
        return None
    root_id = str(schema.get("$id") or schema.get("id") or "")
    draft = str(schema.get("$schema", ""))
    is_old = any(name in draft for name in OLD_DRAFTS)
    base = urljoin(BASE, root_id)
    is_changed = False
    for part in [*_schemas(schema)]:
        metaschema = part.get("$schema")
        if isinstance(metaschema, str) and not METASCHEMA.fullmatch(metaschema):
            _require_server(metaschema, urljoin(BASE, metaschema), location)
            del part["$schema"]
            is_changed = True
        for keyword in REFERENCES:
            reference = part.get(keyword)
            if not isinstance(reference, str) or reference.startswith("#"):
                continue
            url, fragment = urldefrag(urljoin(base, reference))
            is_changed = True
            if url == urldefrag(base)[0]:
                part[keyword] = f"#{fragment}"
                continue
            _require_server(reference, url, location)
            if is_old:
                part.clear()
            else:
                del part[keyword]
    return msgspec.json.encode(schema) if is_changed else None


def _require_server(reference: str, url: str, location: Location) -> None:
    """Raise RenderError for a reference that is not to a server."""
    if urlsplit(url).scheme not in UNCHECKED_SCHEMES:
        problem = f"the schema refers to `{sanitize(reference)}`, outside of the chart"
        hint = "put the definitions into `values.schema.json`"
        raise RenderError("render.helm.schema", problem, location=location, hint=hint)


def _schemas(schema: JsonObject) -> Iterator[JsonObject]:
    """Yield all objects that may be schemas."""
    pending: list[Json] = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _may_have_schema(archive: Path) -> bool:
    """Return whether a chart archive has a schema or further archives."""
    try:
        with gzip.open(archive) as stream:
            contents = stream.read(MAX_CHART_SIZE)
    except (OSError, EOFError, zlib.error):
        return True  # Helm may be able to read a part of it
    is_complete = len(contents) < MAX_CHART_SIZE
    return not is_complete or SCHEMA.encode() in contents or ARCHIVE.encode() in contents


def _is_subchart(archive: Path) -> bool:
    return archive.parent.name == "charts"


def _files(directory: Path, suffix: str) -> list[Path]:
    return [
        Path(parent, name)
        for parent, _, names in os.walk(directory, followlinks=True)
        for name in sorted(names)
        if name.endswith(suffix)
    ]
