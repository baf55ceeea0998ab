"""Applications: what Argo CD deploys, from where, and how, as a unit with findings beside it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.dialect.argo.options import notes_of
from tidegate.dialect.argo.requests import Body, without_silent_blocks
from tidegate.dialect.argo.source import Owner, read_source
from tidegate.dialect.argo.syncing import read_policy
from tidegate.dialect.argo.telling import Telling
from tidegate.dialect.declared import Declared
from tidegate.documents import Document, FieldPath
from tidegate.errors import foreign
from tidegate.model.finding import Finding
from tidegate.model.objects import Propagation
from tidegate.model.patterns import late
from tidegate.model.project import ProjectClaim
from tidegate.model.reading import labels_of, listed, mapping, part, text
from tidegate.model.unit import Destination, Unit, UnitId, UnitSource

KIND = "Application"
OWN_SERVER, OWN_CLUSTER = "https://kubernetes.default.svc", "in-cluster"
SKIPS = "argocd.argoproj.io/skip-reconcile"
CASCADES = "resources-finalizer.argocd.argoproj.io"
CASCADE_WAYS = {
    "": Propagation.FOREGROUND,
    "foreground": Propagation.FOREGROUND,
    "background": Propagation.BACKGROUND,
}
TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
REF = late(r"[a-zA-Z0-9_-]+")


def read_application(document: Document, namespace: str) -> Declared:
    """The unit of an Application; one that names no namespace is in this one.

    What Argo CD would refuse is told, and what can be read is in the unit all the same.
    """
    telling, body = Telling(document.place), document.body
    name, spec = text(body, "metadata", "name"), mapping(body, "spec")
    if not name:
        why = "what it deploys goes by its name"
        telling.error("argo.name", ("metadata",), "an Application has no name", why, "write one")
        return Declared(findings=telling.findings)
    if part(body, "operation") is not None:
        why = "it asks for one sync, as soon as it is applied"
        telling.note("argo.operation", ("operation",), "`operation` is not played", why)
    destination = _destination(spec, telling)
    policy = read_policy(spec, telling)
    cascade = cascade_of(body)
    if cascade is not None:
        policy = msgspec.structs.replace(policy, cascades=True, farewell=cascade)
    written = tuple(_written(spec, telling))
    _check_refs(written, telling)
    owner = Owner(
        name=name,
        where=document.place,
        namespace=destination.namespace,
        project=text(spec, "project", default="default"),
    )
    sources, findings = _sources(written, owner)
    unit = Unit(
        id=UnitId(KIND, "", text(body, "metadata", "namespace", default=namespace), name),
        sources=sources,
        destination=destination,
        policy=policy,
        where=document.place,
        suspended=notes_of(body).get(SKIPS) in TRUE,
        claim=_claim(spec, written),
        labels=labels_of(body),
    )
    return Declared(units=(unit,), findings=(*telling.findings, *findings))


def cascade_of(body: Body) -> Propagation | None:
    """How what it has brought goes with it, by the first finalizer that says so; None: it stays."""
    for one in map(str, listed(body, "metadata", "finalizers")):
        name, _, way = one.partition("/")
        if name == CASCADES and way in CASCADE_WAYS:
            return CASCADE_WAYS[way]
    return None


def _destination(spec: Body, telling: Telling) -> Destination:
    """Argo CD's own cluster has no name: it is where the Application is."""
    server, name = (text(spec, "destination", key) for key in ("server", "name"))
    path, why = ("spec", "destination"), "Argo CD does not know which cluster is meant"
    if server and name:
        said = "the destination has both `server` and `name`"
        telling.error("argo.destination", path, said, why, "keep one of the two")
    if not server and not name and part(spec, "destination") is not None:
        said, fix = "the destination has no `server` and no `name`", f"write `server: {OWN_SERVER}`"
        telling.error("argo.destination", path, said, why, fix)
    server = server.rstrip("/")
    cluster = name or server
    is_own = cluster in {OWN_SERVER, OWN_CLUSTER}
    return Destination("" if is_own else cluster, text(spec, "destination", "namespace"))


def _claim(spec: Body, written: tuple[tuple[FieldPath, Body], ...]) -> ProjectClaim:
    """What it asks of its project: a repository that nobody writes is asked of nobody."""
    urls = (text(body, "repoURL") for _, body in written)
    return ProjectClaim(
        project=text(spec, "project", default="default"),
        repositories=tuple(dict.fromkeys(url for url in urls if url)),
        server=text(spec, "destination", "server").rstrip("/"),
        cluster=text(spec, "destination", "name"),
        namespace=text(spec, "destination", "namespace"),
    )


def _written(spec: Body, telling: Telling) -> Iterator[tuple[FieldPath, Body]]:
    """The sources that count, each with its path: those of a hydrator, else many, else one."""
    hydrated, many, one = (part(spec, key) for key in ("sourceHydrator", "sources", "source"))
    if isinstance(hydrated, dict):
        _tell_ignored([key for key in ("sources", "source") if part(spec, key)], telling)
        path: FieldPath = ("spec", "sourceHydrator")
        said = "the dry source is rendered as it is: hydration is not played"
        why = "Argo CD commits what it renders, and syncs from that branch"
        telling.warn("argo.hydrator", path, said, why)
        dry = hydrated.get("drySource")
        if isinstance(dry, dict):
            yield (*path, "drySource"), dry
    elif isinstance(many, list) and many:
        _tell_ignored(["source"] if one else [], telling)
        for place, body in enumerate(many):
            if isinstance(body, dict):
                yield ("spec", "sources", place), body
    elif isinstance(one, dict):
        yield ("spec", "source"), without_silent_blocks(one)
    elif not one:
        why = "Argo CD marks the Application as invalid and does not sync it"
        said, fix = "an Application needs a source", "write `spec.source` or `spec.sources`"
        telling.error("argo.source", ("spec",), said, why, fix)


def _tell_ignored(fields: list[str], telling: Telling) -> None:
    for field in fields:
        said, why = f"`spec.{field}` is ignored", "another list of sources comes before it"
        telling.warn("argo.sources", ("spec", field), said, why, "remove it")


def _sources(
    written: tuple[tuple[FieldPath, Body], ...], owner: Owner
) -> tuple[tuple[UnitSource, ...], tuple[Finding, ...]]:
    read = [read_source(body, msgspec.structs.replace(owner, path=path)) for path, body in written]
    findings = tuple(finding for _, told in read for finding in told)
    return tuple(source for source, _ in read if source is not None), findings


def _check_refs(written: tuple[tuple[FieldPath, Body], ...], telling: Telling) -> None:
    """Refs must be words, each for one Git repository, and values files may name no other."""
    if not written or "sources" not in written[0][0]:
        return
    several = [(path, body) for path, body in written if text(body, "ref") and len(written) > 1]
    uses = [(path, ref) for at, body in written for path, ref in _uses(at, body)]
    used, known = {ref for _, ref in uses}, set[str]()
    for at, body in several:
        ref, path = text(body, "ref"), (*at, "ref")
        if not REF.fullmatch(ref):
            said, fix = f"the ref `{foreign(ref)}` is no word", "use letters, digits, `_` and `-`"
            telling.error("argo.ref", path, said, "Argo CD refuses all sources", fix)
        elif ref in known:
            said, fix = f"two sources have the ref `{ref}`", "give one of them another ref"
            telling.error("argo.ref", path, said, "Argo CD refuses all sources", fix)
        elif text(body, "chart"):
            said = f"the ref `{ref}` names a chart, and values files cannot be taken from one"
            tell = telling.error if ref in used else telling.warn
            tell("argo.ref", path, said, "Argo CD takes them from Git alone", "remove the ref")
        known.add(ref)
    for path, ref in uses:
        if ref not in known:
            there = ", ".join(f"`{foreign(one)}`" for one in sorted(known))
            fix = f"there are {there}" if there else "give one of several sources a `ref`"
            said = f"no source has the ref `{foreign(ref)}`"
            telling.error("argo.ref", path, said, "Argo CD cannot find the file", fix)


def _uses(at: FieldPath, body: Body) -> Iterator[tuple[FieldPath, str]]:
    """The refs that files of values begin with."""
    for place, file in enumerate(listed(body, "helm", "valueFiles")):
        if isinstance(file, str) and file.startswith("$"):
            yield (*at, "helm", "valueFiles", place), file[1:].partition("/")[0]
    for place, one in enumerate(listed(body, "helm", "fileParameters")):
        if text(one, "path").startswith("$"):
            spot = (*at, "helm", "fileParameters", place, "path")
            yield spot, text(one, "path")[1:].partition("/")[0]
