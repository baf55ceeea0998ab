"""ApplicationSets of a repository: expansion into units, and the results of their generators."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.dialect.argo.appset.applications import GenerationResult, generate_applications
from tidegate.dialect.argo.appset.policies import (
    effective_policy,
    ignored_fields,
    is_strict,
    with_preserved_fields,
)
from tidegate.dialect.argo.appset.queries import (
    FileContentQuery,
    FileListQuery,
    GeneratorInputs,
    Procedure,
    Query,
    QueryResult,
    RegisteredCluster,
    TemplateFailure,
    TemplateQuery,
)
from tidegate.dialect.argo.appset.reader import KIND as APPLICATION_SET_KIND
from tidegate.dialect.argo.appset.reader import (
    application_documents,
    application_set_unit,
    application_units,
    uses_clusters,
)
from tidegate.dialect.declared import ApplicationSet, Declarations
from tidegate.documents import Document
from tidegate.errors import TidegateError
from tidegate.files import PathEscapeError, open_file, resolve_within
from tidegate.knowledge.settings import SIMULATED_VALUE, is_simulated
from tidegate.model.config import Config
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.plan import digest_bytes
from tidegate.model.units.source import GitRef, GitRefKind, GitSource, Snapshot
from tidegate.model.units.unit import Unit, UnitId
from tidegate.plan.diff.ignore_differences import with_live_values
from tidegate.render.helm.go_templates import GoTextError, render_texts
from tidegate.workers.jq import Jq
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.generator_data import (
    GeneratorData,
)
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.result import (
    UNAVAILABLE_SOURCE_CODES,
    UNKNOWN_APPLICATIONS_CODES,
    RenderResult,
)
from tidegate.workspace.rendering.sources import decode_data

CLUSTER_LABEL = ("argocd.argoproj.io/secret-type", "cluster")
"""Label of a Secret that registers a cluster."""
CLUSTER_SECRET_MARKER = b"argocd.argoproj.io/secret-type"
"""Patterns in files with clusters, and with settings."""
GLOBBING_SETTING = "applicationsetcontroller.enable.new.git.file.globbing"
PROGRESSIVE_SYNCS_SETTING = "applicationsetcontroller.enable.progressive.syncs"
HEAD_REVISIONS = frozenset({"", "HEAD"})
MAX_FILE_SIZE = 10_000_000


class ExpandedAppSet(msgspec.Struct, frozen=True):
    """An ApplicationSet, what it generates, and the units and findings of that."""

    appset: ApplicationSet
    generated: GenerationResult
    declared: Declarations
    unit: Unit
    documents: tuple[Document, ...]

    @property
    def render_result(self) -> RenderResult:
        """Its Applications, as the render result of a unit."""
        return RenderResult(documents=self.documents, secret_fields=((),) * len(self.documents))


ListLive: TypeAlias = Callable[[str, str, str], Awaitable[Mapping[str, JsonObject] | None]]
"""Returns the live objects of a kind, cluster and namespace by name; None if unknown."""


async def list_nothing(
    _kind: str, _cluster: str, _namespace: str
) -> Mapping[str, JsonObject] | None:
    """Return None: there is no cluster to list objects of."""
    return None


@dataclass
class AppSetExpander:
    """Expansion of the ApplicationSets of one run, each once."""

    context: RenderContext
    scan: RepositoryScan
    config: Config
    generator_data: GeneratorData
    list_live: ListLive = list_nothing
    created_clusters: tuple[RegisteredCluster, ...] = ()
    """Clusters that units of the repository register with Argo CD."""
    _expanded: dict[bytes, ExpandedAppSet] = field(default_factory=dict)

    async def expand(self, appset: ApplicationSet, cluster: str = "") -> ExpandedAppSet:
        """Return an ApplicationSet of a cluster, expanded; one with an error has only findings."""
        key = msgspec.json.encode(
            (appset.tracking_id, str(appset.location), appset.body, cluster), enc_hook=str
        )
        if key not in self._expanded:
            settings = self._settings
            generated = await self._generate(appset, cluster)
            if not is_strict(appset, settings):
                generated = await self._with_live_fields(appset, generated, cluster)
            uses_rolling_sync = settings.get(PROGRESSIVE_SYNCS_SETTING, "true") == "true"
            self._expanded[key] = ExpandedAppSet(
                appset,
                generated,
                application_units(appset, generated, settings),
                application_set_unit(
                    appset, effective_policy(appset, settings), is_complete=generated.is_complete
                ),
                application_documents(appset, generated, rolling_sync=uses_rolling_sync),
            )
        return self._expanded[key]

    async def _with_live_fields(
        self, appset: ApplicationSet, result: GenerationResult, cluster: str
    ) -> GenerationResult:
        """Return the Applications with the live fields that their set does not change."""
        live_applications = await self.list_live("Application", cluster, appset.namespace) or {}
        rules = ignored_fields(appset, effective_policy(appset, self._settings))
        applications = []
        with closing(Jq()) as jq:
            for application in result.applications:
                live = live_applications.get(application.name)
                if live is None:
                    applications.append(application)
                    continue
                application_rules = tuple(
                    rule for rule in rules if rule.name in {"", application.name}
                )
                preserved = with_preserved_fields(application.body, live, appset)
                body = with_live_values(
                    preserved, live, application_rules, jq.paths_at(appset.location)
                )
                applications.append(msgspec.structs.replace(application, body=body))
        return msgspec.structs.replace(result, applications=tuple(applications))

    @cached_property
    def _settings(self) -> dict[str, str]:
        """The settings of Argo CD's controllers, by the configuration, else by files."""
        settings = (*self.scan.argocd_settings, *self.config.settings)
        return {setting.name: str(setting.value).lower() for setting in settings}

    async def _generate(self, appset: ApplicationSet, cluster: str) -> GenerationResult:
        try:
            result = await self._run(
                generate_applications(appset, await self._generator_inputs(appset, cluster))
            )
            return _with_unit(result, appset)
        except TidegateError as error:
            return GenerationResult(findings=(_failure_finding(appset, error),), is_complete=False)

    async def _run(self, procedure: Procedure[GenerationResult]) -> GenerationResult:
        try:
            query = next(procedure)
            while True:
                query = procedure.send(await self._answer_query(query))
        except StopIteration as end:
            generated: GenerationResult = end.value
            return generated

    async def _answer_query(self, query: Query) -> QueryResult:
        match query:
            case FileListQuery(url, revision):
                return QueryResult(files=(await self._fetch_tree(url, revision)).files)
            case FileContentQuery(url, revision, paths):
                root = (await self._fetch_tree(url, revision)).root
                if root == self.scan.root:
                    self.scan.generator_inputs.update(paths)
                return QueryResult(contents=await asyncio.to_thread(_read_files, root, paths))
            case TemplateQuery():
                try:
                    return QueryResult(texts=await self._render_texts(query))
                except GoTextError as error:
                    return QueryResult(
                        failure=TemplateFailure(error.text, error.problem, error.hint)
                    )

    async def _fetch_tree(self, url: str, revision: str) -> Snapshot:
        ref = GitRef() if revision in HEAD_REVISIONS else GitRef(GitRefKind.ANY, revision)
        return await self.context.fetch(GitSource(url, ref, submodules=True))

    async def _render_texts(self, query: TemplateQuery) -> tuple[tuple[str, ...], ...]:
        key = digest_bytes(msgspec.json.encode(query))
        texts = self.context.render_cache.find_rows(key)
        if texts is None:
            workers = await self.context.worker_pool.helm()
            texts = await render_texts(
                query.texts, query.params, workers, query.options, lenient=query.lenient
            )
            self.context.render_cache.store_rows(key, texts)
        return texts

    async def _generator_inputs(self, appset: ApplicationSet, cluster: str) -> GeneratorInputs:
        results = self.generator_data.get(
            f"{appset.namespace}/{appset.name}"
        ) or self.generator_data.get(appset.name, {})
        doublestar = self._settings.get(GLOBBING_SETTING) == "true"
        needs_clusters = uses_clusters(appset)
        secrets = (
            await self.list_live("Secret", cluster, appset.namespace) if needs_clusters else None
        )
        clusters = clusters_from_secrets((secrets or {}).values())
        declared_clusters = (*self.created_clusters, *known_clusters(self.scan, self.config))
        clusters |= {
            declared_cluster.name: declared_cluster for declared_cluster in declared_clusters
        }
        return GeneratorInputs(
            clusters=tuple(clusters.values()),
            provided=results,
            doublestar=doublestar,
            includes_live_clusters=secrets is not None,
        )


def known_clusters(scan: RepositoryScan, config: Config) -> tuple[RegisteredCluster, ...]:
    """Return the clusters of the repository's Secrets, and those that the configuration names."""
    clusters = clusters_from_secrets(
        document.body for document in scan.documents_containing(CLUSTER_SECRET_MARKER)
    )
    for cluster in config.clusters:
        if cluster.server:
            clusters.setdefault(
                cluster.name,
                RegisteredCluster(name=cluster.name, server=cluster.server, labels=cluster.labels),
            )
    return tuple(clusters.values())


def clusters_of_units(
    sets: Iterable[ApplicationSet], documents: Iterable[Document]
) -> list[RegisteredCluster]:
    """Return the clusters that units register with Argo CD, where an ApplicationSet uses clusters.

    Their Secrets may be rendered by a chart or an overlay, or be encrypted in a file.
    """
    if not any(map(uses_clusters, sets)):
        return []
    return [*clusters_from_secrets(document.body for document in documents).values()]


def clusters_from_secrets(bodies: Iterable[JsonObject]) -> dict[str, RegisteredCluster]:
    """Return the clusters that Secrets among these objects register, by name."""
    clusters: dict[str, RegisteredCluster] = {}
    for body in bodies:
        if get_text(body, "kind") != "Secret" or "sops" in body:
            continue
        labels = _string_values(get_mapping(body, "metadata", "labels"))
        if CLUSTER_LABEL in labels.items():
            cluster = RegisteredCluster(
                **_cluster_fields(body),
                labels=labels,
                annotations=_string_values(get_mapping(body, "metadata", "annotations")),
            )
            clusters[cluster.name] = cluster
    return clusters


def _cluster_fields(body: JsonObject) -> dict[str, str]:
    """Return the fields of the Secret of a cluster.

    Where a simulated operator has made up its values, the name of the Secret replaces them.
    """
    data = {key: value.decode("utf-8", "replace") for key, value in decode_data(body).items()}
    fields = {key: data.get(key, "") for key in ("name", "server", "project")}
    if is_simulated(body):
        secret_name = get_text(body, "metadata", "name")
        made_up = {"name": secret_name, "server": f"https://{secret_name}.simulated", "project": ""}
        fields = {
            key: made_up[key] if value == SIMULATED_VALUE else value
            for key, value in fields.items()
        }
    return fields


def _string_values(body: Mapping[str, object]) -> dict[str, str]:
    return {key: value for key, value in body.items() if isinstance(value, str)}


def _read_files(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    contents = {}
    for path in paths:
        try:
            with open_file(resolve_within(root / path, root)) as file:
                contents[path] = file.read(MAX_FILE_SIZE)
        except (OSError, PathEscapeError):
            continue
    return contents


def _with_unit(result: GenerationResult, appset: ApplicationSet) -> GenerationResult:
    """Return the result with the ApplicationSet in findings about unknown Applications."""
    unit = UnitId(APPLICATION_SET_KIND, "", appset.namespace, appset.name)
    findings = (
        msgspec.structs.replace(finding, unit=unit)
        if finding.code in UNKNOWN_APPLICATIONS_CODES
        else finding
        for finding in result.findings
    )
    return msgspec.structs.replace(result, findings=tuple(findings))


def _failure_finding(appset: ApplicationSet, error: TidegateError) -> Finding:
    finding = Finding(
        code="appset.failed",
        severity=Severity.ERROR,
        message=f"cannot generate the Applications of ApplicationSet"
        f" `{appset.namespace}/{appset.name}`: {error.problem}",
        location=appset.location.with_field("spec.generators"),
        reason=f"at {error.location}" if error.location else "",
        fix=error.hint,
    )
    return (
        msgspec.structs.replace(finding, code="appset.unavailable")
        if error.code in UNAVAILABLE_SOURCE_CODES
        else finding
    )
