"""Flux's ArtifactGenerator: trees that are put together of files of other sources.

Each is an ExternalArtifact of the generator's namespace, by which units name it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tidegate.dialect.declared import Declared
from tidegate.dialect.flux.fields import read_source
from tidegate.dialect.flux.part import Part, open_resource
from tidegate.documents import Document
from tidegate.errors import foreign
from tidegate.model.braces import names_in_braces
from tidegate.model.finding import Severity
from tidegate.model.patterns import late
from tidegate.model.source import DeclaredSource, Discovery, Portion, Putting, SourceObject

SOURCES = ("GitRepository", "OCIRepository", "HelmChart", "Bucket", "ExternalArtifact")
TARGET = "@artifact/"
OVERWRITE, MERGE, EXTRACT = "Overwrite", "Merge", "Extract"
PUTTING = {OVERWRITE: Putting.COPY, MERGE: Putting.MERGE, EXTRACT: Putting.EXTRACT}
CURRENT = ("v1beta1",)
UNSAID = "its generator does not say well what it is made of"
LABEL = late(r"[A-Za-z0-9]([A-Za-z0-9_]{0,61}[A-Za-z0-9])?")
"""What a name in braces must be: a variable, and the key of a label."""


def read_generator(document: Document, namespace: str) -> Declared:
    """The artifacts that a generator makes; one that names no namespace is in this one."""
    resource = open_resource(document, namespace, CURRENT)
    if not resource.name:
        return Declared(findings=resource.findings)
    spec, home = resource.spec, resource.home
    sources = _aliases(spec, home)
    discovery = _discovery(spec, sources) if spec.text("pathPattern") else None
    made = tuple(_artifact(one, home, sources, discovery) for one in spec.parts("artifacts"))
    return Declared(sources=tuple(one for one in made if one.id.name), findings=resource.findings)


def _aliases(spec: Part, home: str) -> dict[str, SourceObject]:
    found: dict[str, SourceObject] = {}
    for one in spec.parts("sources"):
        alias, source = one.text("alias", needed=True), read_source(one, home, SOURCES)
        if alias in found:
            _stop(one, "alias", "is there twice", "give each source a name of its own")
        elif alias and source is not None:
            found[alias] = source
    return found


def _discovery(spec: Part, sources: dict[str, SourceObject]) -> Discovery | None:
    """What directories it looks for; nothing where that is not said well."""
    alias, _, pattern = spec.text("pathPattern").removeprefix("@").partition("/")
    names, problem = names_in_braces(pattern)
    if alias not in sources:
        _stop(spec, "pathPattern", "names no source of the generator", "write `@alias/pattern`")
    elif problem:
        _stop(spec, "pathPattern", problem, "write names in braces, each once: `apps/{app}`")
    elif wrong := [name for name in names if LABEL.fullmatch(name) is None or name[0].isdecimal()]:
        what = f"has `{foreign(wrong[0])}`, which cannot be the key of a label"
        _stop(spec, "pathPattern", what, "begin it with a letter")
    elif len(set(names)) < len(names):
        _stop(spec, "pathPattern", "has a name in braces twice", "give each a name of its own")
    else:
        where = spec.at("pathPattern")
        return Discovery(source=sources[alias], pattern=pattern, name="", where=where)
    return None


def _artifact(
    one: Part, home: str, sources: dict[str, SourceObject], discovery: Discovery | None
) -> DeclaredSource:
    name, named_after = one.text("name", needed=True), one.text("revision").removeprefix("@")
    if named_after and named_after not in sources:
        _stop(one, "revision", "names no source of the generator", "write `@` and its alias")
    copies, portions = one.parts("copy"), tuple(_portions(one, sources))
    is_known = not discovery or all(
        [_fills(one, "name", discovery)]
        + [_fills(copy, key, discovery) for copy in copies for key in ("from", "to")]
    )
    return DeclaredSource(
        id=SourceObject("ExternalArtifact", home, name),
        where=one.at(),
        portions=portions,
        problem="" if is_known and len(portions) >= max(len(copies), 1) else UNSAID,
        named_after=sources.get(named_after),
        discovery=discovery and replace(discovery, name=name),
    )


def _fills(part: Part, key: str, discovery: Discovery) -> bool:
    """Whether a text has only names in braces that the pattern has, too."""
    names, problem = names_in_braces(part.text(key))
    strange = [one for one in names if one not in names_in_braces(discovery.pattern)[0]]
    if problem or strange:
        what = problem or f"has `{{{foreign(strange[0])}}}`, which `pathPattern` has not"
        _stop(part, key, what, "use the names of `pathPattern`")
    return not problem and not strange


def _portions(artifact: Part, sources: dict[str, SourceObject]) -> Iterator[Portion]:
    for one in artifact.parts("copy"):
        said, into = one.text("from", needed=True), one.text("to", needed=True)
        alias, _, pattern = said.removeprefix("@").partition("/")
        if said and (alias not in sources or not said.startswith("@")):
            _stop(one, "from", "names no source of the generator", "write `@alias/pattern`")
        elif into and not into.startswith(TARGET):
            _stop(one, "to", "is no place in the artifact", f"begin it with `{TARGET}`")
        elif said and into:
            how = one.text("strategy", among=(*PUTTING,), default=OVERWRITE)
            yield Portion(
                source=sources[alias],
                pattern=pattern,
                into=into.removeprefix(TARGET),
                excludes=one.words("exclude"),
                how=PUTTING[how],
                where=one.at(),
            )


def _stop(part: Part, name: str, what: str, fix: str) -> None:
    why = "the generator makes nothing until its text is another"
    part.tell("flux.artifact", name, what, severity=Severity.ERROR, why=why, fix=fix)
