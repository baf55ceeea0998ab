"""Charts for tests: those that lie in the tree, and small ones written on the spot."""

from __future__ import annotations

from pathlib import Path

from tidegate.documents import Document
from tidegate.model.k8s.objects import Json
from tidegate.model.units.chart_request import ChartRequest, InlineValues, ValuesLayer

CHARTS = Path(__file__).parents[1] / "data" / "charts"


def a_release(
    chart: str,
    *layers: ValuesLayer,
    root: Path = CHARTS,
    values: dict[str, Json] | None = None,
) -> ChartRequest:
    return ChartRequest(
        root=str(root),
        chart=chart,
        name="shop",
        layers=(InlineValues(), *layers),
        values=values or {},
    )


def write_chart(directory: Path, *, template: str = "", chart: str = "", values: str = "") -> Path:
    """A chart named as its directory, with one template that makes one ConfigMap."""
    (directory / "templates").mkdir(parents=True)
    head = f"apiVersion: v2\nname: {directory.name}\nversion: 0.1.0\n"
    (directory / "Chart.yaml").write_text(head + chart)
    (directory / "values.yaml").write_text(values)
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n"
    (directory / "templates" / "config.yaml").write_text(template or body)
    return directory


def data_of(documents: tuple[Document, ...], name: str = "shop") -> dict[str, Json]:
    """The `data` of the ConfigMap of that name."""
    for document in documents:
        metadata = document.body["metadata"]
        data = document.body.get("data")
        if isinstance(metadata, dict) and metadata.get("name") == name and isinstance(data, dict):
            return data
    raise AssertionError(f"no ConfigMap {name}")


def names_of(documents: tuple[Document, ...]) -> list[str]:
    """`Kind name` of each, in order."""
    return [f"{each.body['kind']} {_name(each)}" for each in documents]


def _name(document: Document) -> Json:
    metadata = document.body["metadata"]
    return metadata["name"] if isinstance(metadata, dict) else None
