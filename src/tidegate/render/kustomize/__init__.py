"""Kustomize overlays: what Argo CD and Flux would build, with the real kustomize.

documents = await build(Overlay(root=tree, path="apps/web", overrides=FluxOverrides()))
"""

from tidegate.render.kustomize.build import (
    Decrypt,
    RemoteError,
    Tool,
    build,
    find_tool,
    inputs_digest,
)
from tidegate.render.kustomize.override import add_common_metadata
from tidegate.render.kustomize.request import (
    ArgoOverrides,
    Fetched,
    FluxOverrides,
    Helm,
    Image,
    Input,
    Overlay,
    Patch,
    Restriction,
    Use,
)

__all__ = [
    "ArgoOverrides",
    "Decrypt",
    "Fetched",
    "FluxOverrides",
    "Helm",
    "Image",
    "Input",
    "Overlay",
    "Patch",
    "RemoteError",
    "Restriction",
    "Tool",
    "Use",
    "add_common_metadata",
    "build",
    "find_tool",
    "inputs_digest",
]
