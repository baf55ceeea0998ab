"""Helm charts, rendered in worker processes that stay warm and can be killed.

layers = argo_layers([ValuesFile("values-prod.yaml")], parameters=[Parameter("tag", "v1")])
request = ChartRequest(root="/srv/shop", chart="web", name="web", layers=layers)
async with helm_workers() as workers:
    documents = await render(request, workers)
"""

from tidegate.render.helm.chart_renderer import helm_workers, render
from tidegate.render.helm.value_files import (
    RemoteValuesError,
    ValueFiles,
    ValuesReference,
    argo_layers,
    find_file_parameter,
    find_value_files,
    flux_layers,
)
from tidegate.render.helm.worker_replies import DependencyError, LookupsError

__all__ = [
    "DependencyError",
    "LookupsError",
    "RemoteValuesError",
    "ValueFiles",
    "ValuesReference",
    "argo_layers",
    "find_file_parameter",
    "find_value_files",
    "flux_layers",
    "helm_workers",
    "render",
]
