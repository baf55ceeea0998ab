"""Sets for tests, run to their end: files, clusters and Go's templates are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.dialect.argo.appset.applications import GenerationResult, generate_applications
from tidegate.dialect.argo.appset.queries import (
    FileContentQuery,
    FileListQuery,
    GeneratorInputs,
    Procedure,
    Query,
    QueryResult,
    Result,
    TemplateQuery,
)
from tidegate.dialect.declared import ApplicationSet
from tidegate.errors import Location
from tidegate.external.worker import Workers
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.render.helm.go_templates import render_texts

NOTHING_KNOWN = GeneratorInputs()


def a_set(*generators: Json, **spec: Json) -> ApplicationSet:
    """The set `argocd/apps`; its template names an Application by `{{name}}` unless it is given."""
    template: Json = {"metadata": {"name": "{{name}}"}, "spec": {"project": "default"}}
    body: JsonObject = {"spec": {"generators": [*generators], "template": template, **spec}}
    return ApplicationSet(
        namespace="argocd", name="apps", location=Location("sets.yaml", 3), body=body
    )


@dataclass
class Runner:
    """Answers what sets ask for. Without workers there is no Go."""

    files: Mapping[str, str] = field(default_factory=dict)
    workers: Workers | None = None
    requests: list[Query] = field(default_factory=list)

    async def generated(
        self, item: ApplicationSet, known: GeneratorInputs = NOTHING_KNOWN
    ) -> GenerationResult:
        return await self.run(generate_applications(item, known))

    async def run(self, procedure: Procedure[Result]) -> Result:
        try:
            ask = next(procedure)
            while True:
                self.requests.append(ask)
                ask = procedure.send(await self._answer(ask))
        except StopIteration as end:
            made: Result = end.value
            return made

    async def _answer(self, ask: Query) -> QueryResult:
        match ask:
            case FileListQuery():
                return QueryResult(files=tuple(sorted(self.files)))
            case FileContentQuery(paths=paths):
                return QueryResult(contents={path: self.files[path].encode() for path in paths})
            case TemplateQuery(texts, params, options, lenient):
                assert self.workers is not None, "a text is not Python's"
                made = await render_texts(texts, params, self.workers, options, lenient=lenient)
                return QueryResult(texts=made)
