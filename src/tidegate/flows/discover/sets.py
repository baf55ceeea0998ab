"""ApplicationSets of a repository become units: whatever they ask for is looked up here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.dialect.argo.sets.applications import Generated, generate
from tidegate.dialect.argo.sets.asking import (
    Ask,
    AskContents,
    AskFiles,
    AskTexts,
    Body,
    Errand,
    Known,
    KnownCluster,
    SetAnswer,
    TextFlaw,
)
from tidegate.dialect.argo.sets.policies import (
    is_strict,
    left_alone,
    policy_of,
    with_preserved,
)
from tidegate.dialect.argo.sets.reading import objects_of, unit_of, units_of, uses_clusters
from tidegate.dialect.argo.settings import read_settings
from tidegate.dialect.declared import Declared, DeclaredSet
from tidegate.documents import Document
from tidegate.errors import TidegateError
from tidegate.files import StrayPathError, follow, open_file
from tidegate.flows.discover.far import FAR
from tidegate.flows.discover.scan import Scan
from tidegate.flows.generator_data import GeneratorData
from tidegate.flows.jq import Jq
from tidegate.flows.rendering import Rendered, Workshop
from tidegate.flows.rendering.trees import data_of
from tidegate.knowledge.settings import SIMULATED, is_simulated
from tidegate.model.config import Config
from tidegate.model.finding import Finding, Severity
from tidegate.model.plan import digest_bytes
from tidegate.model.reading import mapping, text
from tidegate.model.source import GitRef, GitSource, RefKind, Snapshot
from tidegate.model.unit import Unit
from tidegate.plan.diff.ignoring import keep_living
from tidegate.render.go_texts import GoTextError, render_texts

CLUSTER = ("argocd.argoproj.io/secret-type", "cluster")
"""The label of a Secret that is a cluster."""
SECRETS, ARGO_MAPS = b"argocd.argoproj.io/secret-type", b"argocd-cm"
"""What is in the text of files with clusters, and with settings."""
GLOBBING = "applicationsetcontroller.enable.new.git.file.globbing"
PROGRESSIVE = "applicationsetcontroller.enable.progressive.syncs"
HEAD = frozenset({"", "HEAD"})
LARGEST = 10_000_000


class GeneratedSet(msgspec.Struct, frozen=True):
    """A set, what it generates, and the units of that with whatever is to be said of them."""

    set: DeclaredSet
    generated: Generated
    declared: Declared
    unit: Unit
    documents: tuple[Document, ...]

    @property
    def rendered(self) -> Rendered:
        """Its Applications, as what a unit renders to."""
        return Rendered(documents=self.documents, hidden=((),) * len(self.documents))


AskLives: TypeAlias = Callable[[str, str, str], Awaitable[Mapping[str, Body] | None]]
"""By name, the objects of a kind that live in a cluster and a namespace; None: nobody can say."""


async def nothing_lives(_kind: str, _cluster: str, _namespace: str) -> Mapping[str, Body] | None:
    return None


@dataclass
class Generating:
    """All sets of one run, each generated once. `brought`: clusters that units make known."""

    workshop: Workshop
    scan: Scan
    config: Config
    data: GeneratorData
    lives: AskLives = nothing_lives
    brought: tuple[KnownCluster, ...] = ()
    _made: dict[bytes, GeneratedSet] = field(default_factory=dict)

    async def generate(self, one: DeclaredSet, cluster: str = "") -> GeneratedSet:
        """What one set of a cluster comes to; of one at fault, nothing but what is wrong."""
        key = msgspec.json.encode((one.mark, str(one.where), one.body, cluster), enc_hook=str)
        if key not in self._made:
            told = self._told
            generated = await self._generated(one, cluster)
            if not is_strict(one, told):
                generated = await self._as_living(one, generated, cluster)
            rolls = told.get(PROGRESSIVE, "true") == "true"
            self._made[key] = GeneratedSet(
                one,
                generated,
                units_of(one, generated, told),
                unit_of(one, policy_of(one, told), is_whole=generated.is_whole),
                objects_of(one, generated, rolls=rolls),
            )
        return self._made[key]

    async def _as_living(self, one: DeclaredSet, made: Generated, cluster: str) -> Generated:
        """With what stays as it lives of Applications that are there."""
        lives = await self.lives("Application", cluster, one.namespace) or {}
        rules = left_alone(one, policy_of(one, self._told))
        found = []
        with closing(Jq()) as jq:
            for each in made.applications:
                live = lives.get(each.name)
                if live is None:
                    found.append(each)
                    continue
                mine = tuple(rule for rule in rules if rule.name in {"", each.name})
                generated = with_preserved(each.body, live, one)
                body = keep_living(generated, live, mine, jq.paths_at(one.where))
                found.append(msgspec.structs.replace(each, body=body))
        return msgspec.structs.replace(made, applications=tuple(found))

    @cached_property
    def _told(self) -> dict[str, str]:
        """What controllers of Argo CD's are told, by the configuration, else by files."""
        switches = (*read_settings(self.scan.data_with(ARGO_MAPS)), *self.config.settings)
        return {one.name: str(one.value).lower() for one in switches}

    async def _generated(self, one: DeclaredSet, cluster: str) -> Generated:
        try:
            return await self._run(generate(one, await self._known(one, cluster)))
        except TidegateError as error:
            return Generated(findings=(_not_known(one, error),), is_whole=False)

    async def _run(self, errand: Errand[Generated]) -> Generated:
        try:
            ask = next(errand)
            while True:
                ask = errand.send(await self._answer(ask))
        except StopIteration as end:
            made: Generated = end.value
            return made

    async def _answer(self, ask: Ask) -> SetAnswer:
        match ask:
            case AskFiles(url, revision):
                return SetAnswer(files=(await self._tree(url, revision)).files)
            case AskContents(url, revision, paths):
                root = (await self._tree(url, revision)).root
                return SetAnswer(contents=await asyncio.to_thread(_read_all, root, paths))
            case AskTexts():
                try:
                    return SetAnswer(texts=await self._texts(ask))
                except GoTextError as error:
                    return SetAnswer(flaw=TextFlaw(error.text, error.problem, error.hint))

    async def _tree(self, url: str, revision: str) -> Snapshot:
        at = GitRef() if revision in HEAD else GitRef(RefKind.ANY, revision)
        return await self.workshop.fetch(GitSource(url, at, submodules=True))

    async def _texts(self, ask: AskTexts) -> tuple[tuple[str, ...], ...]:
        key = digest_bytes(msgspec.json.encode(ask))
        known = self.workshop.renders.find_rows(key)
        if known is None:
            workers = await self.workshop.crew.helm()
            known = await render_texts(
                ask.texts, ask.params, workers, ask.options, lenient=ask.lenient
            )
            self.workshop.renders.keep_rows(key, known)
        return known

    async def _known(self, one: DeclaredSet, cluster: str) -> Known:
        given = self.data.get(f"{one.namespace}/{one.name}") or self.data.get(one.name, {})
        doublestar = self._told.get(GLOBBING) == "true"
        names = uses_clusters(one)
        asked = await self.lives("Secret", cluster, one.namespace) if names else None
        found = clusters_in((asked or {}).values())
        known = (*self.brought, *known_clusters(self.scan, self.config))
        found |= {each.name: each for each in known}
        return Known(
            clusters=tuple(found.values()),
            given=given,
            doublestar=doublestar,
            asked=asked is not None,
        )


def known_clusters(scan: Scan, config: Config) -> tuple[KnownCluster, ...]:
    """Those of the repository's Secrets, and those that the configuration names."""
    found = clusters_in(one.body for one in scan.data_with(SECRETS))
    for one in config.clusters:
        if one.server:
            found.setdefault(
                one.name, KnownCluster(name=one.name, server=one.server, labels=one.labels)
            )
    return tuple(found.values())


def clusters_brought(
    sets: Iterable[DeclaredSet], documents: Iterable[Document]
) -> list[KnownCluster]:
    """The clusters that units make known to Argo CD, where a set asks for clusters.

    Their Secrets may come out of a chart or an overlay, or stand encrypted in a file.
    """
    if not any(map(uses_clusters, sets)):
        return []
    return [*clusters_in(one.body for one in documents).values()]


def clusters_in(bodies: Iterable[Body]) -> dict[str, KnownCluster]:
    """By name, the clusters that Secrets among these objects make known."""
    found: dict[str, KnownCluster] = {}
    for body in bodies:
        if text(body, "kind") != "Secret" or "sops" in body:
            continue
        labels = _texts(mapping(body, "metadata", "labels"))
        if CLUSTER in labels.items():
            one = KnownCluster(
                **_said_of_cluster(body),
                labels=labels,
                annotations=_texts(mapping(body, "metadata", "annotations")),
            )
            found[one.name] = one
    return found


def _said_of_cluster(body: Body) -> dict[str, str]:
    """What a Secret says of its cluster; where a simulated operator has made up the values of one,
    its own name stands for them.
    """
    data = {key: one.decode("utf-8", "replace") for key, one in data_of(body).items()}
    said = {key: data.get(key, "") for key in ("name", "server", "project")}
    if is_simulated(body):
        own = text(body, "metadata", "name")
        made_up = {"name": own, "server": f"https://{own}.simulated", "project": ""}
        said = {key: made_up[key] if one == SIMULATED else one for key, one in said.items()}
    return said


def _texts(body: Mapping[str, object]) -> dict[str, str]:
    return {key: one for key, one in body.items() if isinstance(one, str)}


def _read_all(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    found = {}
    for path in paths:
        try:
            with open_file(follow(root / path, root)) as file:
                found[path] = file.read(LARGEST)
        except (OSError, StrayPathError):
            continue
    return found


def _not_known(one: DeclaredSet, error: TidegateError) -> Finding:
    found = Finding(
        code="argo.set-failed",
        severity=Severity.ERROR,
        sentence=f"what ApplicationSet `{one.namespace}/{one.name}` generates is not known:"
        f" {error.problem}",
        where=one.where.at("spec.generators"),
        why=f"at {error.where}" if error.where else "",
        fix=error.hint,
    )
    return msgspec.structs.replace(found, code="argo.set-far") if error.code in FAR else found
