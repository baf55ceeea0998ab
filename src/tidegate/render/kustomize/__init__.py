"""Kustomize overlays, built with the real kustomize as Argo CD and Flux build them.

documents = await build(Overlay(root=tree, path="apps/web", overrides=FluxOverrides()))
"""

from tidegate.render.kustomize.build import Builder, RemoteError, build, find_tool
from tidegate.render.kustomize.override import add_common_metadata
from tidegate.render.kustomize.tree import DecryptableFile, FileUse

__all__ = [
    "Builder",
    "DecryptableFile",
    "FileUse",
    "RemoteError",
    "add_common_metadata",
    "build",
    "find_tool",
]
