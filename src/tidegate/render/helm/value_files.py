"""Values of a release: their order, and the files that an Application names.

value_files = ValueFiles(root=tree, chart="charts/web", refs={"values": other}, variables=build)
    layers = argo_layers(find_value_files(["values.yaml", "$values/envs/*.yaml"], value_files))

A path is relative to the chart; with a `/`, to the root of the source; with `$name/`, to the root
of the source with this `ref`. A pattern becomes the files that match; a file that is also named by
itself stays where it is named. Of duplicates the first counts.

The order of merging differs. Argo CD calls `helm template`: files, then the inline values as one
more file, then `--set`, then `--set-string`, then `--set-file`, independent of their order in the
manifest. Flux merges by itself: each reference in turn, the inline values last, and a `targetPath`
over the values so far.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from tidegate.errors import Location, RenderError, sanitize
from tidegate.files import PathEscapeError, normalize_path
from tidegate.model.display import join_quoted
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


SECRETS_SCHEME = "secrets"
"""The scheme of helm-secrets, a plugin that decrypts the file of the address, or of its query.

Encrypted values stay as they are: `scripts/commands/downloader.sh` of helm-secrets 4.6.
"""


class RemoteValuesError(RenderError):
    """An error: values must be fetched from web addresses."""

    urls: tuple[str, ...] = ()
    """All of the missing addresses."""


class ValueFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where value files are searched."""

    root: Path
    """The root of the source."""
    chart: str = "."
    """The directory of the chart, relative to the root."""
    refs: Mapping[str, Path] = {}
    """Roots of other sources by their `ref`."""
    variables: Mapping[str, str] = {}
    """Build environment variables of Argo CD."""
    ignore_missing: bool = False
    """Whether missing files are ignored (`ignoreMissingValueFiles`)."""
    fetched: Mapping[str, str] = {}
    """Text of each web address that an earlier `RemoteValuesError` named."""
    schemes: frozenset[str] = frozenset({"http", "https"})
    """URL schemes that value files may have."""


class _ValueEntry(msgspec.Struct, frozen=True):
    """One entry of `valueFiles`: a web address, or a path below a root."""

    text: str
    """The entry as it is written."""
    path: str
    """The path below the root."""
    root: str = ""
    """The root of another source; empty for the source of the chart."""
    url: str = ""
    """The web address; empty for a path."""


def find_value_files(
    entries: Iterable[str], value_files: ValueFiles
) -> tuple[ValuesFile | ValuesText, ...]:
    """Return the layers of the entries of `valueFiles`, in order.

    Like `getResolvedValueFiles` and `getResolvedRefValueFile` in
    `reposerver/repository/repository.go` and `ResolveValueFilePathOrUrl` in
    `util/io/path/resolved.go` of Argo CD 3.5.6.
    """
    parsed = [_read(entry, value_files) for entry in entries]
    _require_fetched(parsed, value_files)
    named_files = {(entry.root, entry.path) for entry in parsed if not _is_glob(entry)}
    layers: dict[tuple[str, str], ValuesFile | ValuesText] = {}
    for entry in parsed:
        if entry.url:
            fetched = ValuesText(
                value_files.fetched[entry.url], redact_query(entry.url), is_file=True
            )
            layers.setdefault(("", entry.url), fetched)
        elif _is_glob(entry):
            for path in _matching_files(entry, value_files):
                if (entry.root, path) not in named_files:
                    layers.setdefault((entry.root, path), _file(entry.root, path, optional=False))
        else:
            layer = _file(entry.root, entry.path, optional=value_files.ignore_missing)
            layers.setdefault((entry.root, entry.path), layer)
    return tuple(layers.values())


def redact_query(url: str) -> str:
    """Return an address without its query, to be shown: signed links have secrets there."""
    return sanitize(url.partition("?")[0])


def find_file_parameter(name: str, path: str, value_files: ValueFiles) -> FileParameter:
    """Return the parameter of an entry of `fileParameters`, which names one file."""
    entry = _read(path, value_files)
    if entry.url:
        problem = f"the parameter `{sanitize(name)}` must be read from a file of a source"
        raise RenderError("render.helm.file", problem, location=Location(sanitize(path)))
    return FileParameter(name, entry.path if entry.root else f"/{entry.path}", entry.root)


def _read(entry: str, value_files: ValueFiles) -> _ValueEntry:
    first, _, rest = entry.partition("/")
    ref = value_files.refs.get(first.removeprefix("$")) if first.startswith("$") else None
    if ref is not None:
        path = _normalize(expand(rest, value_files.variables), entry)
        return _ValueEntry(entry, path, str(ref))
    _check_reference(first, value_files, entry)
    text = expand(entry, value_files.variables)
    url = _URL.match(text)
    if url is not None and url[1].lower().partition("+")[0] == SECRETS_SCHEME:
        return _read(text[url.end() :].rpartition("?")[2], value_files)
    if url is not None:
        if url[1].lower() not in value_files.schemes:
            problem = f"fetching values over `{sanitize(url[1])}` is not allowed"
            hint = "allowed are " + ", ".join(
                f"`{scheme}`" for scheme in sorted(value_files.schemes)
            )
            raise RenderError(
                "render.helm.file", problem, location=Location(sanitize(entry)), hint=hint
            )
        return _ValueEntry(entry, "", url=text)
    start = "" if text.startswith("/") else value_files.chart
    return _ValueEntry(entry, _normalize(posixpath.join(start, text.lstrip("/")), entry))


def _check_reference(first: str, value_files: ValueFiles, entry: str) -> None:
    """Raise RenderError for `$name/` that is neither a source nor a variable."""
    reference = _REFERENCE.fullmatch(first)
    if reference is None or reference[1] in value_files.variables:
        return
    problem = f"`{sanitize(entry)}` refers to an unknown source"
    known_refs = ", ".join(f"`${name}`" for name in sorted(value_files.refs))
    hint = f"use one of {known_refs}" if known_refs else "no source of the Application has a `ref`"
    raise RenderError(
        "render.helm.reference", problem, location=Location(sanitize(entry)), hint=hint
    )


def _normalize(path: str, entry: str) -> str:
    try:
        return normalize_path(path.lstrip("/"))
    except PathEscapeError as error:
        raise path_error(error.violation, entry) from None


def _is_glob(entry: _ValueEntry) -> bool:
    return not entry.url and is_pattern(entry.path)


def _matching_files(entry: _ValueEntry, value_files: ValueFiles) -> Iterator[str]:
    root = Path(entry.root) if entry.root else value_files.root
    location = Location(sanitize(entry.text))
    try:
        paths = find_matches(root, entry.path)
    except PathEscapeError as error:
        raise path_error(error.violation, entry.text) from None
    except ValueError as error:
        problem = f"`{sanitize(entry.text)}` is not a valid pattern: {error}"
        raise RenderError("render.helm.pattern", problem, location=location) from None
    if not paths and not value_files.ignore_missing:
        problem = f"no file matches `{sanitize(entry.text)}`"
        hint = "set `ignoreMissingValueFiles` to allow that"
        raise RenderError("render.helm.file", problem, location=location, hint=hint)
    yield from paths


def _file(root: str, path: str, *, optional: bool) -> ValuesFile:
    return ValuesFile(path if root else f"/{path}", optional=optional, root=root)


def _require_fetched(entries: Iterable[_ValueEntry], value_files: ValueFiles) -> None:
    urls = tuple(
        dict.fromkeys(entry.url for entry in entries if entry.url not in {"", *value_files.fetched})
    )
    if not urls:
        return
    shown = join_quoted([redact_query(url) for url in urls], 1)
    error = RemoteValuesError(
        "render.helm.remote-values",
        f"the values at {shown} must be fetched first",
        location=Location(redact_query(urls[0])),
        hint="allow network access, or store the values in a source",
    )
    error.urls = urls
    raise error


class ValuesReference(msgspec.Struct, frozen=True, gc=False):
    """An entry of `valuesFrom` that has been read."""

    text: str
    """The value of the key."""
    name: str
    """Name for errors."""
    target_path: str = ""
    """`targetPath`; empty for values in YAML."""
    literal: bool = False
    """Whether the text is set as it is, without parsing."""

    def __repr__(self) -> str:
        return f"ValuesReference({self.name})"


def argo_layers(
    files: Iterable[ValuesFile | ValuesText] = (),
    *,
    text: str = "",
    parameters: Iterable[Parameter] = (),
    file_parameters: Iterable[FileParameter] = (),
    variables: Mapping[str, str] | None = None,
) -> tuple[ValuesLayer, ...]:
    """Return the layers of `helm.valueFiles`, `values`, `parameters` and `fileParameters`.

    `valuesObject` is `values` of the request; it replaces `text`, so pass only one of them. Of
    parameters with the same name and type the last counts. If `variables` are given, values of
    parameters may contain them.

    Like `helmTemplate` in `reposerver/repository/repository.go` and `template` in
    `util/helm/cmd.go` of Argo CD 3.5.6.
    """
    layers: list[ValuesLayer] = [*files]
    parameters = tuple(parameters)
    if text:
        layers.append(ValuesText(text, "helm.values", is_file=True))
    layers.append(InlineValues())
    for how in (ParameterType.TYPED, ParameterType.STRING):
        by_name = {parameter.name: parameter for parameter in parameters if parameter.how is how}
        for parameter in by_name.values():
            value = parameter.value if variables is None else expand(parameter.value, variables)
            layers.append(Parameter(parameter.name, _escape(value), how))
    layers += {parameter.name: parameter for parameter in file_parameters}.values()
    return tuple(layers)


def _escape(value: str) -> str:
    """Escape commas: a comma does not end a value in Argo CD, except in a list in braces.

    Like `cleanSetParameters` in `util/helm/cmd.go` of Argo CD 3.5.6.
    """
    if value.startswith("{") and value.endswith("}"):
        return value
    return _BARE_COMMA.sub(r"\\,", value)


def flux_layers(references: Iterable[ValuesReference] = ()) -> tuple[ValuesLayer, ...]:
    """Return the layers of `valuesFrom` of a HelmRelease, with its `values` where Flux merges them.

    Flux merges the inline values before each `targetPath` and again at the end. So a `targetPath`
    overrides an inline value of the same name only inside a mapping that no earlier reference has:
    that is what Flux does, unlike its documentation.

    Like `ChartValuesFromReferences` and `ReplacePathValue` in `values.go` of fluxcd/pkg/chartutil
    1.27.2.
    """
    layers: list[ValuesLayer] = []
    for reference in references:
        if reference.target_path:
            layers += (InlineValues(), _target(reference))
        else:
            layers.append(ValuesText(reference.text, reference.name))
    return (*layers, InlineValues())


def _target(reference: ValuesReference) -> Parameter:
    text = reference.text
    if reference.literal:
        return Parameter(reference.target_path, text, ParameterType.LITERAL)
    for quote in ("'", '"'):
        if text.startswith(quote) and text.endswith(quote):
            return Parameter(reference.target_path, text.strip("'\""), ParameterType.STRING)
    return Parameter(reference.target_path, text)
