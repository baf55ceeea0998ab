"""Kustomize's complaints in our words.

Kustomize likes to quote what it was given, secrets included. So a message is taken apart: the names
in it are used, and of a message that is not known only the part before any quotation.
"""

from __future__ import annotations

import posixpath

from tidegate.documents import read_documents
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.kustomize.collect import OverlayInputs

_ID = r"(?P<kind>[^\s./]+)\.\S*?/(?P<name>[^\s/]+)\.(?:\[noNs\]|[^\s.'\";]+)"
_TWICE = lazy_regex(rf"may not add resource with an already registered id: {_ID}")
_NO_TARGET = lazy_regex(rf"(?:no matches for Id|nothing selected by) {_ID}")
_NOTHING_TO_MERGE = lazy_regex(
    r'Kind:"(?P<kind>\w*)".*?Name:"(?P<name>[^"]*)".* does not exist; cannot merge or replace'
)
_NO_OBJECT = lazy_regex(r"missing metadata\.name in object|missing Resource metadata")
_NOT_YAML = lazy_regex(r"MalformedYAMLError: (?P<why>.*?) in File: (?P<file>.+)")
_LINE = lazy_regex(r"^yaml: line \d+: ")
_WRONG_KIND = lazy_regex(r"expected kind (?:!= )?'Component' for path '(?P<path>[^']*)'")
_BAD_PATCH = "unable to parse SM or JSON patch"
_DIRECTORY = lazy_regex(r"recursed (?:accumulation of|merging from) path '([^']*)'")
_FILE = lazy_regex(r"(?:accumulating|merging) resources from '([^']+)'")
_WRAPPING = lazy_regex(
    r"^(?:accumulating \w+: "
    r"|accumulation err='accumulating resources from '[^']*': '[^']*' must resolve to a file': "
    r"|recursed (?:accumulation of|merging from) path '[^']*': "
    r"|accumulateDirectory: \"|loader\.New \")"
)
_SCRATCH = lazy_regex(r"/\S*?/tidegate-scratch-[a-z0-9_-]+/(?:tree/?)?")
_QUOTATION = lazy_regex(r"[`{&]|\[patch: | with config:|: map\[")


def kustomize_error(stderr: bytes, gathering: OverlayInputs) -> RenderError:
    """The error to raise when kustomize ends with this on stderr."""
    lines = stderr.decode(errors="replace").splitlines()
    said = "\n".join(line for line in lines if not line.startswith("# Warning"))
    text = said.removeprefix("error: ")
    where = _place(text, gathering)
    if found := _TWICE.search(text):
        problem = f"{found['kind']} `{sanitize(found['name'])}` is there twice"
        hint = "two resources of the overlay have the same kind, namespace and name"
        return RenderError("render.kustomize.twice", problem, location=where, hint=hint)
    if found := _NO_TARGET.search(text) or _NOTHING_TO_MERGE.search(text):
        thing = f"{found['kind']} `{sanitize(found['name'])}`"
        problem = f"a patch, generator or replacement needs {thing}, which is not there"
        hint = "compare kind, apiVersion, name and namespace with those of the resource"
        return RenderError("render.kustomize.target", problem, location=where, hint=hint)
    if found := _NOT_YAML.search(text):
        broken = _broken_at(where, gathering)
        why = _LINE.sub("", found["why"]) if broken else found["why"]
        problem, where = (
            f"`{sanitize(found['file'])}` is not YAML: {sanitize(why)}",
            broken or where,
        )
        return RenderError("render.kustomize.resource", problem, location=where)
    if _NO_OBJECT.search(text):
        problem = "a document is no Kubernetes object: it has no kind or no name"
        hint = "name only files that hold objects, or exclude this one"
        return RenderError("render.kustomize.resource", problem, location=where, hint=hint)
    return _rarer_refusal(text, where)


def _rarer_refusal(text: str, where: Location) -> RenderError:
    if found := _WRONG_KIND.search(text):
        path = sanitize(_SCRATCH.sub("", found["path"]))
        problem = f"`{path}` must be named below `components` if, and only if, it is a Component"
        return RenderError("render.kustomize.component", problem, location=where)
    if _BAD_PATCH in text:
        problem = "a patch is neither a part of an object nor a list of JSON operations"
        return RenderError("render.kustomize.patch", problem, location=where)
    if "literal source" in text:  # which it quotes, and it may be a password
        problem = "a literal of a generator is not written as `key=value`"
        return RenderError("render.kustomize.literal", problem, location=where)
    if "kustomization.yaml is empty" in text:
        problem = "the kustomization says nothing"
        hint = "name at least one resource"
        return RenderError("render.kustomize.none", problem, location=where, hint=hint)
    problem = f"kustomize refuses the overlay: {sanitize(_innermost(text))}"
    return RenderError("render.kustomize.build", problem, location=where)


def _place(text: str, gathering: OverlayInputs) -> Location:
    """The innermost file that is named, or the directory, or at least the overlay."""
    start = posixpath.dirname(gathering.top)
    directories = _DIRECTORY.findall(text)
    for path in directories[-1:]:
        start = posixpath.normpath("tree/" + _SCRATCH.sub("", path))
    rest = text.rpartition("recursed accumulation of path")[2]
    files = [path for path in _FILE.findall(rest) if _is_file(start, path, gathering)]
    path = posixpath.join(start, files[-1]) if files else start
    return Location(posixpath.normpath(path).partition("/")[2] or ".")


def _broken_at(file: Location, gathering: OverlayInputs) -> Location | None:
    """Where a file ceases to be YAML: kustomize counts the lines of each document by itself."""
    try:
        read_documents(gathering.copy.files.get(f"tree/{file.name}", b""), file.name)
    except DocumentError as error:
        return error.location
    return None


def _is_file(start: str, path: str, gathering: OverlayInputs) -> bool:
    return posixpath.normpath(posixpath.join(start, path)) in gathering.copy.files


def _innermost(text: str) -> str:
    """The first line without its wrapping, up to where a quotation begins."""
    line = text.partition("\n")[0]
    while (shorter := _WRAPPING.sub("", line)) != line:
        line = shorter
    return _QUOTATION.split(_SCRATCH.sub("", line), maxsplit=1)[0].rstrip(" :'\"")
