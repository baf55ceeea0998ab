"""The charts as tests render them, and what is read of the objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tidegate.documents import read_documents
from tidegate.external.worker import Workers
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.units.chart_request import ChartRequest
from tidegate.render.helm import render

CHARTS = Path(__file__).parents[2] / "charts"
WAVE = "argocd.argoproj.io/sync-wave"

Values = dict[str, Json]


class Chart(StrEnum):
    """The charts of applications."""

    LARAVEL = "laravel"
    YII2 = "yii2"
    BEDROCK = "wordpress-bedrock"


@dataclass(frozen=True, slots=True)
class Rendering:
    """Renders charts, as `shop`."""

    workers: Workers

    async def objects(self, chart: Chart, *values: Values) -> dict[str, JsonObject]:
        """By `Kind name`; names begin with the name of the release and the chart."""
        release = ChartRequest(
            root=str(CHARTS), chart=str(chart), name="shop", values=laid_over(*values)
        )
        documents = await render(release, self.workers)
        return {called(document.body, chart): document.body for document in documents}

    async def everything(self, chart: Chart, *values: Values) -> dict[str, JsonObject]:
        """With everything switched on."""
        return await self.objects(chart, everything(chart), *values)


def everything(chart: Chart) -> Values:
    path = CHARTS / chart / "ci" / "everything-values.yaml"
    return _mapping_in(path)


def defaults(chart: Chart) -> Values:
    return _mapping_in(CHARTS / chart / "values.yaml")


def _mapping_in(path: Path) -> Values:
    text = f"apiVersion: v1\nkind: Values\nmetadata: {{name: it}}\n{path.read_text()}"
    (document,) = read_documents(text, path.name)
    head = {"apiVersion", "kind", "metadata"}
    return {key: value for key, value in document.body.items() if key not in head}


def called(body: JsonObject, chart: Chart) -> str:
    """`Job *-migrate-#`: what a name has of its release and of a hash is left out."""
    kind, name = body["kind"], get_mapping(body, "metadata")["name"]
    short = str(name).replace(f"shop-{chart}", "*")
    if kind == "Job" and short.startswith("*-migrate-"):
        short = "*-migrate-#"
    return f"{kind} {short}"


def laid_over(*layers: Mapping[str, Json]) -> Values:
    """Values over values, as Helm merges them."""
    merged: Values = {}
    for layer in layers:
        for key, value in layer.items():
            below = merged.get(key)
            if isinstance(below, dict) and isinstance(value, dict):
                merged[key] = laid_over(below, value)
            else:
                merged[key] = value
    return merged


def setting(path: str, value: Json) -> Values:
    """`setting("ingress.syncWave", 3)`"""
    *above, last = path.split(".")
    values: Values = {last: value}
    for name in reversed(above):
        values = {name: values}
    return values


def annotations_of(body: JsonObject) -> dict[str, Json]:
    return get_mapping(body, "metadata", "annotations")


def waves_of(objects: Mapping[str, JsonObject]) -> dict[str, Json]:
    return {name: annotations_of(body).get(WAVE) for name, body in objects.items()}


def without_wave(body: JsonObject) -> JsonObject:
    """The object without any wave."""
    metadata = get_mapping(body, "metadata")
    kept = {key: value for key, value in annotations_of(body).items() if key != WAVE}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**body, "metadata": {**rest, **({"annotations": kept} if kept else {})}}
