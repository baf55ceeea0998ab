"""Substitution of variables in objects, as Flux does after its build (`spec.postBuild`).

variables = collect_variables([VariableSource("ConfigMap", "cluster", values)], inline={"zone":
"a"})
    substitute(document, variables, strict=True)

The object is written as YAML, expanded as text, and read again: that is how `${replicas}` becomes a
number. An object opts out with `kustomize.toolkit.fluxcd.io/substitute: disabled`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from tidegate.documents import Document, read_documents
from tidegate.documents.document import format_path
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import FieldPath, Json, Kind
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.envsubst.layout import to_flux_yaml
from tidegate.render.envsubst.template import (
    MARKER_END,
    MARKER_START,
    SubstitutionError,
    UnsetVariableError,
    expand,
)
from tidegate.schema.example_values import fill_variables

OPT_OUT = "kustomize.toolkit.fluxcd.io/substitute"
_NAME = lazy_regex(r"[_a-zA-Z][_a-zA-Z0-9]*")
_MARKED = lazy_regex(f"{MARKER_START}([^{MARKER_END}]*){MARKER_END}")


class Variables(msgspec.Struct, frozen=True):
    """Names and values. The values may be secret, so the representation has none."""

    values: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The values by name."""
    unknown_names: frozenset[str] = frozenset()
    """The variables whose values are unknown."""
    is_complete: bool = True
    """Whether all names are known. Otherwise the values of other names are unknown, too."""

    def __repr__(self) -> str:
        return "Variables()"

    def is_unknown(self, name: str) -> bool:
        """Return whether a variable without a value may have one that is unknown."""
        return not self.is_complete or name in self.unknown_names


class VariableSource(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `substituteFrom`."""

    kind: str
    """`ConfigMap` or `Secret`."""
    name: str
    """The name of the object."""
    values: Mapping[str, str] | None
    """Data of the object; None if the object does not exist."""
    optional: bool = False
    """Whether the object may be missing."""
    unknown_names: frozenset[str] = frozenset()
    """Names in the data whose values are unknown."""
    is_unknown: bool = False
    """Whether the object may exist with any data."""

    def __repr__(self) -> str:
        return f"VariableSource({self.kind}, {self.name})"


def collect_variables(
    sources: Collection[VariableSource] = (),
    *,
    inline: Mapping[str, str] | None = None,
    location: Location | None = None,
) -> Variables:
    """Return the variables of all sources and the inline values.

    Later sources override earlier ones, inline values override all. Line breaks are dropped.

    Like `LoadVariables` in `kustomize_varsub.go` of fluxcd/pkg/kustomize 1.35.6.
    """
    collected: dict[str, str] = {}
    for source in sources:
        if source.values is None and not (source.optional or source.is_unknown):
            problem = f"{source.kind} `{source.name}` for variables not found"
            hint = "create it, or set `optional: true` in `substituteFrom`"
            raise RenderError("render.substitute.source", problem, location=location, hint=hint)
        collected |= source.values or {}
    collected |= inline or {}
    for name in sorted(collected):
        if not _NAME.fullmatch(name):
            problem = f"`{sanitize(name)}` is not a valid variable name"
            hint = "use letters, digits and `_`; Flux rejects such a name even if it is unused"
            raise RenderError("render.substitute.name", problem, location=location, hint=hint)
    return Variables(
        {name: value.replace("\n", "") for name, value in collected.items()},
        frozenset(name for source in sources for name in source.unknown_names) - collected.keys(),
        is_complete=not any(source.is_unknown for source in sources),
    )


def substitute(
    document: Document,
    variables: Variables,
    *,
    strict: bool = True,
    even_without_variables: bool = False,
) -> Document:
    """Return the document with all variables replaced.

    Without variables nothing is replaced, not even `${name:-default}`, unless
    `even_without_variables` is set (`substituteStrategy: Always`). With `strict` a variable must be
    set or have a default, where all variables are known. One that is unknown gets an example value.

    Like `SubstituteVariables` and `varSubstitution` in `kustomize_varsub.go` of
    fluxcd/pkg/kustomize 1.35.6.
    """
    is_empty = variables.is_complete and not (variables.values or variables.unknown_names)
    if (is_empty and not even_without_variables) or opts_out(document):
        return document
    text = to_flux_yaml(document.body)
    if "$" not in text:
        return document
    expanded = _expand(text, document, variables, strict=strict)
    body = _read_again(expanded, document)
    if MARKER_START.encode() not in expanded:
        return msgspec.structs.replace(document, body=body)
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    filled, paths = fill_variables(kind, body, _with_example_names)
    return msgspec.structs.replace(document, body=filled, unknown_fields=paths)


def _with_example_names(text: str) -> str | None:
    """Return a text with names in place of its unknown variables: `web.secret-domain`."""
    if MARKER_START not in text:
        return None
    return _MARKED.sub(lambda match: match[1].lower().replace("_", "-").strip("-"), text)


def opts_out(document: Document) -> bool:
    """Return whether a label or an annotation is `disabled`, in exactly this spelling."""
    values = (
        get_text(document.body, "metadata", field, OPT_OUT) for field in ("labels", "annotations")
    )
    return "disabled" in values


def _expand(text: str, document: Document, variables: Variables, *, strict: bool) -> bytes:
    try:
        return expand(text, variables.values, strict=strict, is_unknown=variables.is_unknown)
    except UnsetVariableError as error:
        location = _find_field(document, variables, strict=strict)
        problem = f"the variable `{sanitize(str(error))}` is not set"
        hint = f"set it, give a default (`${{{error}:-…}}`), or write `$${{` for a plain `${{`"
        raise RenderError(
            "render.substitute.missing", problem, location=location, hint=hint
        ) from None
    except SubstitutionError as error:
        location = _find_field(document, variables, strict=strict)
        problem = f"a `${{` opens no expansion that can be read: {error}"
        hint = f"write `$${{` for a plain `${{`, or set the annotation `{OPT_OUT}: disabled`"
        raise RenderError(
            "render.substitute.syntax", problem, location=location, hint=hint
        ) from None


def _find_field(document: Document, variables: Variables, *, strict: bool) -> Location:
    """Return the location of the first field that cannot be expanded."""
    for path, value in _texts(document.body, ()):
        try:
            expand(value, variables.values, strict=strict, is_unknown=variables.is_unknown)
        except (SubstitutionError, UnsetVariableError):
            return document.location.with_field(format_path(path))
    return document.location


def _texts(value: Json, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key in sorted(value):
            yield (*path, key), key
            yield from _texts(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _read_again(text: bytes, document: Document) -> dict[str, Json]:
    """Parse the expanded text.

    The error does not quote the YAML parser: it may contain a secret value.
    """
    try:
        documents = read_documents(text, document.location.name)
    except DocumentError:
        documents = ()
    if len(documents) == 1:
        return documents[0].body
    problem = "after substitution the object is not a YAML mapping"
    hint = 'quote values with special characters: `${quote}${name}${quote}` where `quote` is `"`'
    raise RenderError("render.substitute.result", problem, location=document.location, hint=hint)
