"""Put variables into objects, as Flux does after its build (`spec.postBuild`).

    variables = collect([Source("ConfigMap", "cluster", found)], inline={"zone": "a"})
    substitute(document, variables, strict=True)

The object is written as YAML, expanded as text, and read again: that is how `${replicas}` becomes
a number. An object opts out with `kustomize.toolkit.fluxcd.io/substitute: disabled`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tidegate.documents import Document, read_documents
from tidegate.documents.document import format_path
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.envsubst.layout import to_flux_yaml
from tidegate.render.envsubst.template import SubstitutionError, UnsetVariableError, expand

OPT_OUT = "kustomize.toolkit.fluxcd.io/substitute"
_NAME = lazy_regex(r"[_a-zA-Z][_a-zA-Z0-9]*")


class Variables(msgspec.Struct, frozen=True):
    """Names and values. The values may be secret, so they do not print."""

    values: Mapping[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return "Variables()"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `substituteFrom`. `values` is None where the object is not there."""

    kind: str
    name: str
    values: Mapping[str, str] | None
    optional: bool = False

    def __repr__(self) -> str:
        return f"Source({self.kind}, {self.name})"


def collect(
    sources: Iterable[Source] = (),
    *,
    inline: Mapping[str, str] | None = None,
    where: Location | None = None,
) -> Variables:
    """Later sources win over earlier ones, inline values over all. Line breaks are dropped."""
    collected: dict[str, str] = {}
    for source in sources:
        if source.values is None and not source.optional:
            problem = f"there is no {source.kind} `{source.name}` to take variables from"
            hint = "create it, or set `optional: true` on the entry of `substituteFrom`"
            raise RenderError("render.substitute.source", problem, location=where, hint=hint)
        collected |= source.values or {}
    collected |= inline or {}
    for name in sorted(collected):
        if not _NAME.fullmatch(name):
            problem = f"`{sanitize(name)}` cannot be the name of a variable"
            hint = "use letters, digits and `_`; Flux refuses such a name even if nothing uses it"
            raise RenderError("render.substitute.name", problem, location=where, hint=hint)
    return Variables({name: value.replace("\n", "") for name, value in collected.items()})


def substitute(
    document: Document, variables: Variables, *, strict: bool = True, always: bool = False
) -> Document:
    """The document with all variables put in.

    Without any variable nothing is done, not even `${name:-default}`, unless `always` is said
    (`substituteStrategy: Always`). With `strict` a variable must be set or have a default.
    """
    if not (variables.values or always) or opts_out(document):
        return document
    written = to_flux_yaml(document.body)
    if "$" not in written:
        return document
    expanded = _expand(written, document, variables, strict=strict)
    return msgspec.structs.replace(document, body=_read_again(expanded, document))


def opts_out(document: Document) -> bool:
    """Whether a label or an annotation says `disabled`, in just this spelling."""
    marks = (
        get_text(document.body, "metadata", part, OPT_OUT) for part in ("labels", "annotations")
    )
    return "disabled" in marks


def _expand(written: str, document: Document, variables: Variables, *, strict: bool) -> bytes:
    try:
        return expand(written, variables.values, strict=strict)
    except UnsetVariableError as error:
        where = _find_field(document, variables, strict=strict)
        problem = f"the variable `{sanitize(str(error))}` is not set"
        hint = f"set it, give a default (`${{{error}:-…}}`), or write `$${{` for a plain `${{`"
        raise RenderError("render.substitute.missing", problem, location=where, hint=hint) from None
    except SubstitutionError as error:
        where = _find_field(document, variables, strict=strict)
        problem = f"a `${{` opens no expansion that can be read: {error}"
        hint = f"write `$${{` for a plain `${{`, or set the annotation `{OPT_OUT}: disabled`"
        raise RenderError("render.substitute.syntax", problem, location=where, hint=hint) from None


def _find_field(document: Document, variables: Variables, *, strict: bool) -> Location:
    """The first field that does not expand by itself, as a help to find it in the file."""
    for path, value in _texts(document.body, ()):
        try:
            expand(value, variables.values, strict=strict)
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


def _read_again(written: bytes, document: Document) -> dict[str, Json]:
    """What YAML says about the text is not repeated: it may quote a secret value."""
    try:
        found = read_documents(written, document.location.name)
    except DocumentError:
        found = ()
    if len(found) == 1:
        return found[0].body
    problem = "with its variables put in, the object is no longer a YAML mapping"
    hint = 'a value with special signs needs quotes: `${quote}${name}${quote}` where `quote` is `"`'
    raise RenderError("render.substitute.result", problem, location=document.location, hint=hint)
