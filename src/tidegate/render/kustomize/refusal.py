"""Kustomize's complaints in our words.

Kustomize likes to quote what it was given, secrets included. So a message is taken apart: the names
in it are used, and of a message that is not known only the part before any quotation.
"""

from __future__ import annotations

import posixpath

from tidegate.documents import read
from tidegate.errors import DocumentError, Place, RenderError, foreign
from tidegate.model.patterns import late
from tidegate.render.kustomize.gather import Gathering

_ID = r"(?P<kind>[^\s./]+)\.\S*?/(?P<name>[^\s/]+)\.(?:\[noNs\]|[^\s.'\";]+)"
_TWICE = late(rf"may not add resource with an already registered id: {_ID}")
_NO_TARGET = late(rf"(?:no matches for Id|nothing selected by) {_ID}")
_NOTHING_TO_MERGE = late(
    r'Kind:"(?P<kind>\w*)".*?Name:"(?P<name>[^"]*)".* does not exist; cannot merge or replace'
)
_NO_OBJECT = late(r"missing metadata\.name in object|missing Resource metadata")
_NOT_YAML = late(r"MalformedYAMLError: (?P<why>.*?) in File: (?P<file>.+)")
_LINE = late(r"^yaml: line \d+: ")
_WRONG_KIND = late(r"expected kind (?:!= )?'Component' for path '(?P<path>[^']*)'")
_BAD_PATCH = "unable to parse SM or JSON patch"

_DIRECTORY = late(r"recursed (?:accumulation of|merging from) path '([^']*)'")
_FILE = late(r"(?:accumulating|merging) resources from '([^']+)'")
_WRAPPING = late(
    r"^(?:accumulating \w+: "
    r"|accumulation err='accumulating resources from '[^']*': '[^']*' must resolve to a file': "
    r"|recursed (?:accumulation of|merging from) path '[^']*': "
    r"|accumulateDirectory: \"|loader\.New \")"
)
_SCRATCH = late(r"/\S*?/tidegate-scratch-[a-z0-9_-]+/(?:tree/?)?")
_QUOTATION = late(r"[`{&]|\[patch: | with config:|: map\[")


def refusal(stderr: bytes, gathering: Gathering) -> RenderError:
    """The error to raise when kustomize ends with this on stderr."""
    lines = stderr.decode(errors="replace").splitlines()
    said = "\n".join(line for line in lines if not line.startswith("# Warning"))
    text = said.removeprefix("error: ")
    where = _place(text, gathering)
    if found := _TWICE.search(text):
        problem = f"{found['kind']} `{foreign(found['name'])}` is there twice"
        hint = "two resources of the overlay have the same kind, namespace and name"
        return RenderError("render.kustomize.twice", problem, where=where, hint=hint)
    if found := _NO_TARGET.search(text) or _NOTHING_TO_MERGE.search(text):
        thing = f"{found['kind']} `{foreign(found['name'])}`"
        problem = f"a patch, generator or replacement needs {thing}, which is not there"
        hint = "compare kind, apiVersion, name and namespace with those of the resource"
        return RenderError("render.kustomize.target", problem, where=where, hint=hint)
    if found := _NOT_YAML.search(text):
        broken = _broken_at(where, gathering)
        why = _LINE.sub("", found["why"]) if broken else found["why"]
        problem, where = f"`{foreign(found['file'])}` is not YAML: {foreign(why)}", broken or where
        return RenderError("render.kustomize.resource", problem, where=where)
    if _NO_OBJECT.search(text):
        problem = "a document is no Kubernetes object: it has no kind or no name"
        hint = "name only files that hold objects, or exclude this one"
        return RenderError("render.kustomize.resource", problem, where=where, hint=hint)
    return _rarer_refusal(text, where)


def _rarer_refusal(text: str, where: Place) -> RenderError:
    if found := _WRONG_KIND.search(text):
        path = foreign(_SCRATCH.sub("", found["path"]))
        problem = f"`{path}` must be named below `components` if, and only if, it is a Component"
        return RenderError("render.kustomize.component", problem, where=where)
    if _BAD_PATCH in text:
        problem = "a patch is neither a part of an object nor a list of JSON operations"
        return RenderError("render.kustomize.patch", problem, where=where)
    if "literal source" in text:  # which it quotes, and it may be a password
        problem = "a literal of a generator is not written as `key=value`"
        return RenderError("render.kustomize.literal", problem, where=where)
    if "kustomization.yaml is empty" in text:
        problem = "the kustomization says nothing"
        hint = "name at least one resource"
        return RenderError("render.kustomize.none", problem, where=where, hint=hint)
    problem = f"kustomize refuses the overlay: {foreign(_innermost(text))}"
    return RenderError("render.kustomize.build", problem, where=where)


def _place(text: str, gathering: Gathering) -> Place:
    """The innermost file that is named, or the directory, or at least the overlay."""
    start = posixpath.dirname(gathering.top)
    directories = _DIRECTORY.findall(text)
    for path in directories[-1:]:
        start = posixpath.normpath("tree/" + _SCRATCH.sub("", path))
    rest = text.rpartition("recursed accumulation of path")[2]
    files = [path for path in _FILE.findall(rest) if _is_file(start, path, gathering)]
    path = posixpath.join(start, files[-1]) if files else start
    return Place(posixpath.normpath(path).partition("/")[2] or ".")


def _broken_at(file: Place, gathering: Gathering) -> Place | None:
    """Where a file ceases to be YAML: kustomize counts the lines of each document by itself."""
    try:
        read(gathering.copy.files.get(f"tree/{file.name}", b""), file.name)
    except DocumentError as error:
        return error.where
    return None


def _is_file(start: str, path: str, gathering: Gathering) -> bool:
    return posixpath.normpath(posixpath.join(start, path)) in gathering.copy.files


def _innermost(text: str) -> str:
    """The first line without its wrapping, up to where a quotation begins."""
    line = text.partition("\n")[0]
    while (shorter := _WRAPPING.sub("", line)) != line:
        line = shorter
    return _QUOTATION.split(_SCRATCH.sub("", line), maxsplit=1)[0].rstrip(" :'\"")
