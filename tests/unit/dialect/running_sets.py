"""Sets for tests, run to their end: files, clusters and Go's templates are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.dialect.argo.sets.applications import Generated, generate
from tidegate.dialect.argo.sets.asking import (
    Ask,
    AskContents,
    AskFiles,
    AskTexts,
    Errand,
    Known,
    Made,
    SetAnswer,
)
from tidegate.dialect.declared import DeclaredSet
from tidegate.errors import Place
from tidegate.external.worker import Workers
from tidegate.model.objects import Json
from tidegate.render.go_texts import render_texts

Body = dict[str, Json]
NOTHING_KNOWN = Known()


def a_set(*generators: Json, **spec: Json) -> DeclaredSet:
    """The set `argocd/apps`; its template names an Application by `{{name}}` unless it is given."""
    template: Json = {"metadata": {"name": "{{name}}"}, "spec": {"project": "default"}}
    body: Body = {"spec": {"generators": [*generators], "template": template, **spec}}
    return DeclaredSet(namespace="argocd", name="apps", where=Place("sets.yaml", 3), body=body)


@dataclass
class Runner:
    """Answers what sets ask for. Without workers there is no Go."""

    files: Mapping[str, str] = field(default_factory=dict)
    workers: Workers | None = None
    asked: list[Ask] = field(default_factory=list)

    async def generated(self, one: DeclaredSet, known: Known = NOTHING_KNOWN) -> Generated:
        return await self.run(generate(one, known))

    async def run(self, errand: Errand[Made]) -> Made:
        try:
            ask = next(errand)
            while True:
                self.asked.append(ask)
                ask = errand.send(await self._answer(ask))
        except StopIteration as end:
            made: Made = end.value
            return made

    async def _answer(self, ask: Ask) -> SetAnswer:
        match ask:
            case AskFiles():
                return SetAnswer(files=tuple(sorted(self.files)))
            case AskContents(paths=paths):
                return SetAnswer(contents={path: self.files[path].encode() for path in paths})
            case AskTexts(texts, params, options, lenient):
                assert self.workers is not None, "a text is not Python's"
                made = await render_texts(texts, params, self.workers, options, lenient=lenient)
                return SetAnswer(texts=made)
