"""Which values a release gets, in which order; which files an Application means.

    among = ValueFiles(root=tree, chart="charts/web", refs={"values": other}, variables=build)
    layers = argo_layers(find_value_files(["values.yaml", "$values/envs/*.yaml"], among))

A path starts at the chart, with a `/` at the root of the source, and with `$name/` at the root of
the source that goes by this `ref`. Patterns become the files that fit; one that is also named by
itself stands where it is named. Of what is named twice the first counts.

The order in which values are merged differs. Argo CD calls `helm template`: files, then the inline
values as one more file, then `--set`, then `--set-string`, then `--set-file`, whatever order the
manifest has them in. Flux merges by itself: each reference in turn, the inline values last, and a
`targetPath` on top of what there is then.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from tidegate.errors import Location, RenderError, sanitize
from tidegate.files import PathEscapeError, normalize_path
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import (
    FileParameter,
    InlineValues,
    Parameter,
    ParameterType,
    ValuesFile,
    ValuesLayer,
    ValuesText,
)
from tidegate.render.argocd_variables import expand
from tidegate.render.globs import find_matches, is_pattern
from tidegate.render.helm.worker.files import path_error

_BARE_COMMA = lazy_regex(r"(?<!\\),")
_URL = lazy_regex(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REFERENCE = lazy_regex(r"\$\{?(\w+)\}?", re.ASCII)


class RemoteValuesError(RenderError):
    """Values must be fetched from web addresses. `urls` says from which, all of them."""

    urls: tuple[str, ...] = ()


class ValueFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where value files are looked for.

    `fetched` has the text for each web address that a first try reported.
    """

    root: Path
    chart: str = "."
    refs: Mapping[str, Path] = {}
    variables: Mapping[str, str] = {}
    ignore_missing: bool = False
    fetched: Mapping[str, str] = {}
    schemes: frozenset[str] = frozenset({"http", "https"})


class _ValueEntry(msgspec.Struct, frozen=True):
    """One entry: a web address, or a path from a root on."""

    said: str
    path: str
    root: str = ""
    url: str = ""


def find_value_files(
    entries: Iterable[str], among: ValueFiles
) -> tuple[ValuesFile | ValuesText, ...]:
    """The layers that entries of `valueFiles` mean, in their order."""
    read = [_read(entry, among) for entry in entries]
    _refuse_remote(read, among)
    named = {(entry.root, entry.path) for entry in read if not _is_glob(entry)}
    layers: dict[tuple[str, str], ValuesFile | ValuesText] = {}
    for entry in read:
        if entry.url:
            fetched = ValuesText(among.fetched[entry.url], redact_query(entry.url), is_file=True)
            layers.setdefault(("", entry.url), fetched)
        elif _is_glob(entry):
            for path in _fitting(entry, among):
                if (entry.root, path) not in named:
                    layers.setdefault((entry.root, path), _file(entry.root, path, optional=False))
        else:
            layer = _file(entry.root, entry.path, optional=among.ignore_missing)
            layers.setdefault((entry.root, entry.path), layer)
    return tuple(layers.values())


def redact_query(url: str) -> str:
    """An address as it may be shown: signed links have their secret behind the question mark."""
    return sanitize(url.partition("?")[0])


def find_file_parameter(name: str, path: str, among: ValueFiles) -> FileParameter:
    """An entry of `fileParameters`, which means one file."""
    entry = _read(path, among)
    if entry.url:
        problem = f"the parameter `{sanitize(name)}` must come from a file of a source"
        raise RenderError("render.helm.file", problem, location=Location(sanitize(path)))
    return FileParameter(name, entry.path if entry.root else f"/{entry.path}", entry.root)


def _read(entry: str, among: ValueFiles) -> _ValueEntry:
    first, _, rest = entry.partition("/")
    ref = among.refs.get(first.removeprefix("$")) if first.startswith("$") else None
    if ref is not None:
        path = _inside(expand(rest, among.variables), entry)
        return _ValueEntry(entry, path, str(ref))
    _refuse_unknown(first, among, entry)
    text = expand(entry, among.variables)
    url = _URL.match(text)
    if url is not None:
        if url[1].lower() not in among.schemes:
            problem = f"values are not fetched over `{sanitize(url[1])}`"
            hint = "allowed are " + ", ".join(f"`{scheme}`" for scheme in sorted(among.schemes))
            raise RenderError(
                "render.helm.file", problem, location=Location(sanitize(entry)), hint=hint
            )
        return _ValueEntry(entry, "", url=text)
    start = "" if text.startswith("/") else among.chart
    return _ValueEntry(entry, _inside(posixpath.join(start, text.lstrip("/")), entry))


def _refuse_unknown(first: str, among: ValueFiles, entry: str) -> None:
    """`$name/` that is neither a source nor a variable is a mistake, not the root."""
    named = _REFERENCE.fullmatch(first)
    if named is None or named[1] in among.variables:
        return
    problem = f"`{sanitize(entry)}` starts at a source that is not there"
    known = ", ".join(f"`${name}`" for name in sorted(among.refs))
    hint = f"there are {known}" if known else "no source of the Application has a `ref`"
    raise RenderError(
        "render.helm.reference", problem, location=Location(sanitize(entry)), hint=hint
    )


def _inside(path: str, entry: str) -> str:
    try:
        return normalize_path(path.lstrip("/"))
    except PathEscapeError as stray:
        raise path_error(stray.violation, entry) from None


def _is_glob(entry: _ValueEntry) -> bool:
    return not entry.url and is_pattern(entry.path)


def _fitting(entry: _ValueEntry, among: ValueFiles) -> Iterator[str]:
    root = Path(entry.root) if entry.root else among.root
    where = Location(sanitize(entry.said))
    try:
        found = find_matches(root, entry.path)
    except PathEscapeError as stray:
        raise path_error(stray.violation, entry.said) from None
    except ValueError as error:
        problem = f"`{sanitize(entry.said)}` is no pattern: {error}"
        raise RenderError("render.helm.pattern", problem, location=where) from None
    if not found and not among.ignore_missing:
        problem = f"no file fits `{sanitize(entry.said)}`"
        hint = "set `ignoreMissingValueFiles` if that is fine"
        raise RenderError("render.helm.file", problem, location=where, hint=hint)
    yield from found


def _file(root: str, path: str, *, optional: bool) -> ValuesFile:
    return ValuesFile(path if root else f"/{path}", optional=optional, root=root)


def _refuse_remote(entries: Iterable[_ValueEntry], among: ValueFiles) -> None:
    urls = tuple(
        dict.fromkeys(entry.url for entry in entries if entry.url not in {"", *among.fetched})
    )
    if not urls:
        return
    more = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
    error = RemoteValuesError(
        "render.helm.remote-values",
        f"the values at `{redact_query(urls[0])}`{more} must be fetched first",
        location=Location(redact_query(urls[0])),
        hint="allow the network, or keep the values in a source",
    )
    error.urls = urls
    raise error


class ValuesReference(msgspec.Struct, frozen=True, gc=False):
    """An entry of `valuesFrom` that has been read: the text, and what it was called."""

    text: str
    name: str
    target_path: str = ""
    literal: bool = False

    def __repr__(self) -> str:
        return f"Reference({self.name})"


def argo_layers(
    files: Iterable[ValuesFile | ValuesText] = (),
    *,
    text: str = "",
    parameters: Iterable[Parameter] = (),
    file_parameters: Iterable[FileParameter] = (),
    variables: Mapping[str, str] | None = None,
) -> tuple[ValuesLayer, ...]:
    """`helm.valueFiles`, `values`, `parameters` and `fileParameters` of an Argo CD source.

    `valuesObject` is the release's own `values`; it takes the place of `text`, so give one of the
    two. Of parameters with the same name and kind the last counts. Where `variables` are given,
    values of parameters may name them.
    """
    ordered: list[ValuesLayer] = [*files]
    parameters = tuple(parameters)
    if text:
        ordered.append(ValuesText(text, "helm.values", is_file=True))
    ordered.append(InlineValues())
    for how in (ParameterType.TYPED, ParameterType.STRING):
        chosen = {each.name: each for each in parameters if each.how is how}
        for each in chosen.values():
            value = each.value if variables is None else expand(each.value, variables)
            ordered.append(Parameter(each.name, _escape(value), how))
    ordered += {each.name: each for each in file_parameters}.values()
    return tuple(ordered)


def _escape(value: str) -> str:
    """A comma does not end a value in Argo CD, unless the value is a list in braces."""
    if value.startswith("{") and value.endswith("}"):
        return value
    return _BARE_COMMA.sub(r"\\,", value)


def flux_layers(references: Iterable[ValuesReference] = ()) -> tuple[ValuesLayer, ...]:
    """`valuesFrom` of a HelmRelease, with its `values` where Flux merges them.

    Flux merges the inline values before each `targetPath` and once more at the end. So a
    `targetPath` beats an inline value of the same name only inside a mapping that no earlier
    reference has: that is what Flux does, whatever its documents say.
    """
    ordered: list[ValuesLayer] = []
    for each in references:
        if each.target_path:
            ordered += (InlineValues(), _target(each))
        else:
            ordered.append(ValuesText(each.text, each.name))
    return (*ordered, InlineValues())


def _target(reference: ValuesReference) -> Parameter:
    text = reference.text
    if reference.literal:
        return Parameter(reference.target_path, text, ParameterType.LITERAL)
    for quote in ("'", '"'):
        if text.startswith(quote) and text.endswith(quote):
            return Parameter(reference.target_path, text.strip("'\""), ParameterType.STRING)
    return Parameter(reference.target_path, text)
