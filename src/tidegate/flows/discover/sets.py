"""ApplicationSets of a repository become units: whatever they ask for is looked up here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from tidegate.dialect.argo.sets.applications import Generated, generate
from tidegate.dialect.argo.sets.asking import (
    Ask,
    AskContents,
    AskFiles,
    AskTexts,
    Errand,
    Known,
    KnownCluster,
    SetAnswer,
)
from tidegate.dialect.argo.sets.reading import units_of
from tidegate.dialect.argo.settings import read_settings
from tidegate.dialect.declared import Declared, DeclaredSet
from tidegate.documents import Document
from tidegate.errors import TidegateError
from tidegate.files import StrayPathError, follow, open_file
from tidegate.flows.discover.scan import Scan
from tidegate.flows.generator_data import GeneratorData
from tidegate.flows.rendering import Workshop
from tidegate.flows.rendering.units import data_of
from tidegate.model.config import Config
from tidegate.model.finding import Finding, Severity
from tidegate.model.plan import digest_bytes
from tidegate.model.reading import mapping, text
from tidegate.model.source import GitRef, GitSource, RefKind, Snapshot
from tidegate.render.go_texts import render_texts

CLUSTER = ("argocd.argoproj.io/secret-type", "cluster")
"""The label of a Secret that is a cluster."""
SECRETS, ARGO_MAPS = b"argocd.argoproj.io/secret-type", b"argocd-cm"
"""What is in the text of files with clusters, and with settings."""
GLOBBING = "applicationsetcontroller.enable.new.git.file.globbing"
HEAD = frozenset({"", "HEAD"})
LARGEST = 10_000_000


@dataclass(slots=True)
class Generating:
    """All sets of one run; the same set is generated once."""

    workshop: Workshop
    scan: Scan
    config: Config
    data: GeneratorData
    _made: dict[bytes, Declared] = field(default_factory=dict)

    async def expanded(self, declared: Declared) -> Declared:
        """What is declared, with the units of its sets."""
        if not declared.sets:
            return declared
        found = [await self._units(one) for one in declared.sets]
        return Declared.together([msgspec.structs.replace(declared, sets=()), *found])

    async def _units(self, one: DeclaredSet) -> Declared:
        key = msgspec.json.encode((one.mark, str(one.where), one.body), enc_hook=str)
        if key not in self._made:
            self._made[key] = units_of(one, await self._generated(one))
        return self._made[key]

    async def _generated(self, one: DeclaredSet) -> Generated:
        try:
            return await self._run(generate(one, self._known(one)))
        except TidegateError as error:
            return Generated(findings=(_not_known(one, error),))

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
                return SetAnswer(texts=await self._texts(ask))

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

    def _known(self, one: DeclaredSet) -> Known:
        given = self.data.get(f"{one.namespace}/{one.name}") or self.data.get(one.name, {})
        switch = setting_of(GLOBBING, self.scan, self.config)
        clusters = known_clusters(self.scan, self.config)
        return Known(clusters=clusters, given=given, doublestar=switch == "true")


def known_clusters(scan: Scan, config: Config) -> tuple[KnownCluster, ...]:
    """Those of the repository's Secrets, and those that the configuration names."""
    found = {one.name: one for one in _from_secrets(scan.data_with(SECRETS))}
    for one in config.clusters:
        if one.server:
            found.setdefault(
                one.name, KnownCluster(name=one.name, server=one.server, labels=one.labels)
            )
    return tuple(found.values())


def setting_of(key: str, scan: Scan, config: Config) -> str:
    """How a controller of Argo CD's is set, by the configuration, else by files."""
    switches = (*config.settings, *read_settings(scan.data_with(ARGO_MAPS)))
    return next((str(one.value).lower() for one in switches if one.name == key), "")


def _from_secrets(documents: Iterable[Document]) -> Iterator[KnownCluster]:
    for document in documents:
        body = document.body
        if text(body, "kind") != "Secret" or "sops" in body:
            continue
        labels = _texts(mapping(body, "metadata", "labels"))
        if CLUSTER in labels.items():
            data = {key: one.decode("utf-8", "replace") for key, one in data_of(body).items()}
            yield KnownCluster(
                name=data.get("name", ""),
                server=data.get("server", ""),
                project=data.get("project", ""),
                labels=labels,
                annotations=_texts(mapping(body, "metadata", "annotations")),
            )


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
    return Finding(
        code="argo.set-failed",
        severity=Severity.ERROR,
        sentence=f"what ApplicationSet `{one.namespace}/{one.name}` generates is not known:"
        f" {error.problem}",
        where=replace(one.where, field="spec.generators"),
        why=f"at {error.where}" if error.where else "",
        fix=error.hint,
    )
