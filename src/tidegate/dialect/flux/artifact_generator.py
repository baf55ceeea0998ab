"""Flux ArtifactGenerators: artifacts that are composed of files of other sources.

Each artifact is an ExternalArtifact in the namespace of the generator.

The checks are those of `artifactgenerator_validation.go` and `artifactgenerator_pathpattern.go` in
`internal/controller` of source-watcher 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.field_reader import FieldReader, open_resource
from tidegate.dialect.flux.fields import read_source
from tidegate.documents import Document
from tidegate.errors import sanitize
from tidegate.model.finding import Severity
from tidegate.model.operators.placeholders import placeholder_names
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import (
    ArtifactCopy,
    ArtifactDiscovery,
    CopyStrategy,
    DeclaredSource,
    SourceObject,
)

SOURCES = ("GitRepository", "OCIRepository", "HelmChart", "Bucket", "ExternalArtifact")
ARTIFACT_PREFIX = "@artifact/"
OVERWRITE, MERGE, EXTRACT = "Overwrite", "Merge", "Extract"
COPY_STRATEGIES = {
    OVERWRITE: CopyStrategy.COPY,
    MERGE: CopyStrategy.MERGE,
    EXTRACT: CopyStrategy.EXTRACT,
}
SERVED_VERSIONS = ("v1beta1",)
INCOMPLETE_MESSAGE = "the definition of its ArtifactGenerator is invalid"
VARIABLE_NAME = lazy_regex(r"[A-Za-z0-9]([A-Za-z0-9_]{0,61}[A-Za-z0-9])?")
"""Syntax of a name in braces: a variable, and the key of a label."""


def read_artifact_generator(document: Document, namespace: str) -> Declarations:
    """Read the artifacts of a generator; `namespace` is used if the generator has none."""
    resource = open_resource(document, namespace, SERVED_VERSIONS)
    if not resource.name:
        return Declarations(findings=resource.findings)
    spec, resource_namespace = resource.spec, resource.namespace
    sources = _sources_by_alias(spec, resource_namespace)
    discovery = _discovery(spec, sources) if spec.text("pathPattern") else None
    artifacts = tuple(
        _artifact(entry, resource_namespace, sources, discovery)
        for entry in spec.children("artifacts")
    )
    return Declarations(
        sources=tuple(artifact for artifact in artifacts if artifact.id.name),
        findings=resource.findings,
    )


def _sources_by_alias(spec: FieldReader, namespace: str) -> dict[str, SourceObject]:
    by_alias: dict[str, SourceObject] = {}
    for entry in spec.children("sources"):
        alias, source = entry.text("alias", required=True), read_source(entry, namespace, SOURCES)
        if alias in by_alias:
            _report_invalid(entry, "alias", "is used twice", "use a unique alias for each source")
        elif alias and source is not None:
            by_alias[alias] = source
    return by_alias


def _discovery(spec: FieldReader, sources: dict[str, SourceObject]) -> ArtifactDiscovery | None:
    """Return the directories to discover; None if the pattern is invalid."""
    alias, _, pattern = spec.text("pathPattern").removeprefix("@").partition("/")
    names, problem = placeholder_names(pattern)
    if alias not in sources:
        _report_invalid(
            spec, "pathPattern", "uses an unknown source alias", "write `@alias/pattern`"
        )
    elif problem:
        _report_invalid(
            spec, "pathPattern", problem, "use each name in braces once, such as `apps/{app}`"
        )
    elif invalid := [
        name for name in names if VARIABLE_NAME.fullmatch(name) is None or name[0].isdecimal()
    ]:
        message = f"has the name `{sanitize(invalid[0])}`, which is not a valid label key"
        _report_invalid(spec, "pathPattern", message, "start the name with a letter")
    elif len(set(names)) < len(names):
        _report_invalid(
            spec, "pathPattern", "has a name in braces twice", "use a unique name for each"
        )
    else:
        location = spec.location("pathPattern")
        return ArtifactDiscovery(source=sources[alias], pattern=pattern, name="", location=location)
    return None


def _artifact(
    artifact: FieldReader,
    namespace: str,
    sources: dict[str, SourceObject],
    discovery: ArtifactDiscovery | None,
) -> DeclaredSource:
    name, revision_alias = (
        artifact.text("name", required=True),
        artifact.text("revision").removeprefix("@"),
    )
    if revision_alias and revision_alias not in sources:
        _report_invalid(artifact, "revision", "uses an unknown source alias", "write `@alias`")
    copy_entries, artifact_copies = artifact.children("copy"), tuple(_copies(artifact, sources))
    is_known = not discovery or all(
        [_uses_known_names(artifact, "name", discovery)]
        + [
            _uses_known_names(copy, key, discovery)
            for copy in copy_entries
            for key in ("from", "to")
        ]
    )
    return DeclaredSource(
        id=SourceObject("ExternalArtifact", namespace, name),
        location=artifact.location(),
        copies=artifact_copies,
        problem=""
        if is_known and len(artifact_copies) >= max(len(copy_entries), 1)
        else INCOMPLETE_MESSAGE,
        revision_source=sources.get(revision_alias),
        discovery=discovery and replace(discovery, name=name),
    )


def _uses_known_names(reader: FieldReader, key: str, discovery: ArtifactDiscovery) -> bool:
    """Return whether a text uses only names in braces that the pattern has."""
    names, problem = placeholder_names(reader.text(key))
    unknown = [name for name in names if name not in placeholder_names(discovery.pattern)[0]]
    if problem or unknown:
        message = problem or f"uses `{{{sanitize(unknown[0])}}}`, which `pathPattern` does not have"
        _report_invalid(reader, key, message, "use the names of `pathPattern`")
    return not problem and not unknown


def _copies(artifact: FieldReader, sources: dict[str, SourceObject]) -> Iterator[ArtifactCopy]:
    for entry in artifact.children("copy"):
        source_path, target = entry.text("from", required=True), entry.text("to", required=True)
        alias, _, pattern = source_path.removeprefix("@").partition("/")
        if source_path and (alias not in sources or not source_path.startswith("@")):
            _report_invalid(entry, "from", "uses an unknown source alias", "write `@alias/pattern`")
        elif target and not target.startswith(ARTIFACT_PREFIX):
            _report_invalid(
                entry, "to", "is not a path in the artifact", f"start it with `{ARTIFACT_PREFIX}`"
            )
        elif source_path and target:
            strategy = entry.text("strategy", choices=(*COPY_STRATEGIES,), default=OVERWRITE)
            yield ArtifactCopy(
                source=sources[alias],
                pattern=pattern,
                destination=target.removeprefix(ARTIFACT_PREFIX),
                excludes=entry.string_list("exclude"),
                strategy=COPY_STRATEGIES[strategy],
                location=entry.location(),
            )


def _report_invalid(reader: FieldReader, name: str, problem: str, fix: str) -> None:
    why = "the generator produces no artifacts until its spec changes"
    reader.report("flux.artifact", name, problem, severity=Severity.ERROR, why=why, fix=fix)
