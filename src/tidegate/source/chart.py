"""What is the same for every chart, wherever it comes from."""

from __future__ import annotations

from pathlib import Path

from tidegate.errors import Place, SourceError, foreign

CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def check_digest(found: str, wanted: str, name: str) -> None:
    """Refuse what is not what was promised. An index may promise nothing."""
    expected = wanted.rpartition(":")[2].lower()
    if expected and expected != found.rpartition(":")[2]:
        problem = f"its digest is `{found}`, and should be `{foreign(wanted)}`"
        raise SourceError("source.digest", problem, where=Place(name))


def check_chart(place: Path, name: str) -> None:
    if not (place / "Chart.yaml").is_file():
        problem = "there is no `Chart.yaml` in it"
        raise SourceError("source.chart.archive", problem, where=Place(name))
