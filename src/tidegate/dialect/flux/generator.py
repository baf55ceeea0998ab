"""Flux's ArtifactGenerator: trees that are put together of files of other sources.

Each is an ExternalArtifact of the generator's namespace, by which units name it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.dialect.declared import Declared
from tidegate.dialect.flux.fields import read_source
from tidegate.dialect.flux.part import Part, open_resource
from tidegate.documents import Document
from tidegate.model.finding import Severity
from tidegate.model.source import DeclaredSource, Portion, Putting, SourceObject

SOURCES = ("GitRepository", "OCIRepository", "HelmChart", "Bucket", "ExternalArtifact")
TARGET = "@artifact/"
OVERWRITE, MERGE, EXTRACT = "Overwrite", "Merge", "Extract"
PUTTING = {OVERWRITE: Putting.COPY, MERGE: Putting.MERGE}
CURRENT = ("v1beta1",)
UNSAID = "its generator does not say well what it is made of"
UNMADE = "its archives are not unpacked"


def read_generator(document: Document, namespace: str) -> Declared:
    """The artifacts that a generator makes; one that names no namespace is in this one."""
    resource = open_resource(document, namespace, CURRENT)
    if not resource.name:
        return Declared(findings=resource.findings)
    spec, home = resource.spec, resource.home
    sources = _aliases(spec, home)
    if spec.text("pathPattern"):
        instead = "no artifacts are made of the directories that it finds"
        spec.tell_difference("pathPattern", instead)
        return Declared(findings=resource.findings)
    made = tuple(_artifact(one, home, sources) for one in spec.parts("artifacts"))
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


def _artifact(one: Part, home: str, sources: dict[str, SourceObject]) -> DeclaredSource:
    name, named_after = one.text("name", needed=True), one.text("revision").removeprefix("@")
    if named_after and named_after not in sources:
        _stop(one, "revision", "names no source of the generator", "write `@` and its alias")
    copies, portions = one.parts("copy"), tuple(_portions(one, sources))
    problem = UNSAID if len(portions) < max(len(copies), 1) else ""
    extracting = [copy for copy in copies if copy.value("strategy") == EXTRACT]
    for copy in extracting:
        copy.tell_difference("strategy", UNMADE)
    if extracting:
        problem = problem or UNMADE
    return DeclaredSource(
        id=SourceObject("ExternalArtifact", home, name),
        where=one.at(),
        portions=portions,
        problem=problem,
        named_after=sources.get(named_after),
    )


def _portions(artifact: Part, sources: dict[str, SourceObject]) -> Iterator[Portion]:
    for one in artifact.parts("copy"):
        said, into = one.text("from", needed=True), one.text("to", needed=True)
        alias, _, pattern = said.removeprefix("@").partition("/")
        if said and (alias not in sources or not said.startswith("@")):
            _stop(one, "from", "names no source of the generator", "write `@alias/pattern`")
        elif into and not into.startswith(TARGET):
            _stop(one, "to", "is no place in the artifact", f"begin it with `{TARGET}`")
        elif said and into:
            how = one.text("strategy", among=(*PUTTING, EXTRACT), default=OVERWRITE)
            yield Portion(
                source=sources[alias],
                pattern=pattern,
                into=into.removeprefix(TARGET),
                excludes=one.words("exclude"),
                how=PUTTING.get(how, Putting.COPY),
                where=one.at(),
            )


def _stop(part: Part, name: str, what: str, fix: str) -> None:
    why = "the generator makes nothing until its text is another"
    part.tell("flux.artifact", name, what, severity=Severity.ERROR, why=why, fix=fix)
