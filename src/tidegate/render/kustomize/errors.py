"""Errors of kustomize, as errors of Tidegate.

Kustomize quotes its input, also secrets. So a message is parsed: its names are used, and of an
unknown message only the part before any quotation.
"""

from __future__ import annotations

import posixpath
import re

from tidegate.documents import read_documents
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.kustomize.collect import OverlayInputs

_ID = (
    r"(?P<kind>[^\s./]+)\.(?P<version>[^\s./]*)\.(?P<group>\S*?)/(?P<name>[^\s/]+)"
    r"\.(?P<namespace>\[noNs\]|[^\s.'\";]+)"
)
_DUPLICATE = lazy_regex(rf"may not add resource with an already registered id: {_ID}")
_NO_TARGET = lazy_regex(rf"(?:no matches for Id|nothing selected by) {_ID}")
_NOTHING_TO_MERGE = lazy_regex(
    r'Group:"(?P<group>[^"]*)".*?Version:"(?P<version>\w*)".*?Kind:"(?P<kind>\w*)".*?'
    r'Name:"(?P<name>[^"]*)", Namespace:"(?P<namespace>[^"]*)".*'
    r" does not exist; cannot merge or replace"
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


def kustomize_error(stderr: bytes, inputs: OverlayInputs) -> RenderError:
    """Return the error for the stderr of kustomize."""
    lines = stderr.decode(errors="replace").splitlines()
    output = "\n".join(line for line in lines if not line.startswith("# Warning"))
    text = output.removeprefix("error: ")
    location = _error_location(text, inputs)
    if match := _DUPLICATE.search(text):
        problem = f"{match['kind']} `{sanitize(match['name'])}` is defined twice"
        hint = "give two resources of the overlay different names, or remove one"
        return RenderError("render.kustomize.duplicate", problem, location=location, hint=hint)
    if match := _NO_TARGET.search(text) or _NOTHING_TO_MERGE.search(text):
        return _missing_target_error(match, location)
    if match := _NOT_YAML.search(text):
        syntax_location = _syntax_error_location(location, inputs)
        reason = _LINE.sub("", match["why"]) if syntax_location else match["why"]
        problem, location = (
            f"`{sanitize(match['file'])}` is not YAML: {sanitize(reason)}",
            syntax_location or location,
        )
        return RenderError("render.kustomize.resource", problem, location=location)
    if _NO_OBJECT.search(text):
        problem = "a document is not a Kubernetes object: kind or name is missing"
        hint = "reference only files with objects, or remove this one"
        return RenderError("render.kustomize.resource", problem, location=location, hint=hint)
    return _rare_error(text, location)


class MissingTargetError(RenderError):
    """A patch, generator or replacement without the object that it changes."""

    target: JsonObject
    """The object, with nothing but its name."""


def _missing_target_error(match: re.Match[str], location: Location) -> MissingTargetError:
    target = f"{match['kind']} `{sanitize(match['name'])}`"
    problem = f"a patch, generator or replacement needs {target}, which does not exist"
    hint = "compare kind, apiVersion, name and namespace with the resource"
    error = MissingTargetError("render.kustomize.target", problem, location=location, hint=hint)
    group, namespace = match["group"].strip("[]"), match["namespace"].strip("[]")
    group, version = ("" if group == "noGrp" else group), match["version"].strip("[]") or "v1"
    metadata: JsonObject = {"name": match["name"]}
    metadata |= {"namespace": namespace} if namespace not in {"", "noNs"} else {}
    api_version = f"{group}/{version}" if group else version
    error.target = {"apiVersion": api_version, "kind": match["kind"], "metadata": metadata}
    return error


def _rare_error(text: str, location: Location) -> RenderError:
    if match := _WRONG_KIND.search(text):
        path = sanitize(_SCRATCH.sub("", match["path"]))
        problem = f"`{path}` must be listed in `components` if, and only if, it is a Component"
        return RenderError("render.kustomize.component", problem, location=location)
    if _BAD_PATCH in text:
        problem = "a patch is neither a partial object nor a list of JSON patch operations"
        return RenderError("render.kustomize.patch", problem, location=location)
    if "literal source" in text:  # which it quotes, and it may be a password
        problem = "a literal of a generator is not `key=value`"
        return RenderError("render.kustomize.literal", problem, location=location)
    if "kustomization.yaml is empty" in text:
        problem = "the kustomization is empty"
        hint = "add at least one resource"
        return RenderError("render.kustomize.none", problem, location=location, hint=hint)
    problem = f"kustomize rejects the overlay: {sanitize(_innermost(text))}"
    return RenderError("render.kustomize.build", problem, location=location)


def _error_location(text: str, inputs: OverlayInputs) -> Location:
    """Return the innermost file or directory that the text names, else the overlay."""
    start = posixpath.dirname(inputs.top_file)
    directories = _DIRECTORY.findall(text)
    for path in directories[-1:]:
        start = posixpath.normpath("tree/" + _SCRATCH.sub("", path))
    rest = text.rpartition("recursed accumulation of path")[2]
    files = [path for path in _FILE.findall(rest) if _is_file(start, path, inputs)]
    path = posixpath.join(start, files[-1]) if files else start
    return Location(posixpath.normpath(path).partition("/")[2] or ".")


def _syntax_error_location(file: Location, inputs: OverlayInputs) -> Location | None:
    """Return where a file is invalid YAML: kustomize counts the lines per document."""
    try:
        read_documents(inputs.copy.files.get(f"tree/{file.name}", b""), file.name)
    except DocumentError as error:
        return error.location
    return None


def _is_file(start: str, path: str, inputs: OverlayInputs) -> bool:
    return posixpath.normpath(posixpath.join(start, path)) in inputs.copy.files


def _innermost(text: str) -> str:
    """Return the first line without its wrapping, up to where a quotation begins."""
    line = text.partition("\n")[0]
    while (shorter := _WRAPPING.sub("", line)) != line:
        line = shorter
    return _QUOTATION.split(_SCRATCH.sub("", line), maxsplit=1)[0].rstrip(" :'\"")
