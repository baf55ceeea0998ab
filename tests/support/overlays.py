"""Overlays that are written down in one file each, and what kustomize itself makes of them."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import msgspec

from tidegate.documents import read_documents
from tidegate.documents.dump import to_json
from tidegate.model.k8s.objects import Json
from tidegate.model.units.rendering import ArgoOverrides, FluxOverrides, LoadRestriction, Overlay
from tidegate.render.kustomize import build, find_tool

FOLDER = Path(__file__).parents[1] / "data" / "overlays"


class OverlayCase(msgspec.Struct, frozen=True):
    """Files, links, and the overlay among them.

    `stands_for` is the kustomization that the dialect would have written into the overlay.
    """

    files: dict[str, str]
    path: str = "app"
    restriction: LoadRestriction = LoadRestriction.ROOT_ONLY
    links: dict[str, str] = {}
    argo: ArgoOverrides | None = None
    flux: FluxOverrides | None = None
    stands_for: str = ""

    def write(self, root: Path) -> None:
        for path, text in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        for path, target in self.links.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)

    def overlay(self, root: Path) -> Overlay:
        overrides = self.argo or self.flux
        return Overlay(root=root, path=self.path, overrides=overrides, restriction=self.restriction)


def all_cases() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_case(name: str) -> OverlayCase:
    path = FOLDER / f"{name}.yaml"
    return msgspec.convert(read_documents(path.read_bytes(), path.name)[0].body, OverlayCase)


def real_output(case: OverlayCase, root: Path, *more: str) -> list[Json]:
    """What kustomize gives, without any of our code, for the files as the dialect leaves them."""
    if case.stands_for:
        (root / case.path).mkdir(parents=True, exist_ok=True)
        (root / case.path / "kustomization.yaml").write_text(case.stands_for)
    argv = [*find_tool().argv, case.path, f"--load-restrictor={case.restriction}", *more]
    # The oracle must not run through what it judges.
    ran = subprocess.run(argv, cwd=root, capture_output=True, check=True)
    return [document.body for document in read_documents(ran.stdout, "oracle")]


async def both_outputs(case: OverlayCase, folder: Path) -> tuple[list[Json], list[Json]]:
    """Ours and the real one, each from files of its own."""
    ours, theirs = folder / "ours", folder / "theirs"
    for root in (ours, theirs):
        await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)
        await asyncio.to_thread(root.mkdir)
        await asyncio.to_thread(case.write, root)
    documents = await build(case.overlay(ours))
    expected = await asyncio.to_thread(real_output, case, theirs)
    return [document.body for document in documents], expected


def texts(bodies: list[Json]) -> list[bytes]:
    return [to_json(body) for body in bodies]
