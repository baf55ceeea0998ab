"""Cached keys of inputs: they are computed again only if a file that was read has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.support.helm_charts import write_chart
from tidegate.errors import RenderError
from tidegate.model.units.chart_request import ChartRequest, InlineValues, ValuesFile
from tidegate.model.units.rendering import ArgoOverrides, FluxOverrides, Overlay
from tidegate.render.cache.keys import overlay_key, release_key, request_text
from tidegate.render.inputs import TIME_GRANULARITY, CacheInputs, KeyCache, file_system_time

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"


def later() -> int:
    """A moment at which all that was written now is long past."""
    return file_system_time() + 2 * TIME_GRANULARITY


@dataclass(slots=True)
class Finder:
    """Finds one key after another, and counts how often it was computed."""

    make: Callable[[CacheInputs], str]
    keys: KeyCache = field(default_factory=lambda: KeyCache(now=later))
    computed: int = 0

    def find(self) -> str:
        return self.keys.find(b"request", self._make)

    def _make(self, inputs: CacheInputs) -> str:
        self.computed += 1
        return self.make(inputs)


def a_chart(root: Path) -> Finder:
    """With values beside it, a link in it, and a file that is not there."""
    write_chart(root / "web")
    (root / "values").mkdir()
    (root / "values" / "prod.yaml").write_text("a: 1\n")
    (root / "chosen.yaml").symlink_to("values/prod.yaml")
    (root / "web" / "motd").symlink_to("../chosen.yaml")
    files = (ValuesFile("/chosen.yaml"), ValuesFile("/absent.yaml", optional=True))
    release = ChartRequest(root=str(root), chart="web", name="web", layers=(*files, InlineValues()))
    return Finder(partial(release_key, release))


def an_overlay(root: Path) -> Finder:
    """With a base that is a link."""
    for folder in ("base", "values", "web"):
        (root / folder).mkdir(parents=True)
    (root / "base" / "kustomization.yaml").write_text("resources: [config.yaml]\n")
    (root / "base" / "config.yaml").write_text(CONFIG.format(name="web"))
    (root / "values" / "prod.yaml").write_text("a: 1\n")
    (root / "chosen.yaml").symlink_to("values/prod.yaml")
    (root / "web" / "linked").symlink_to("../base")
    text = "resources: [linked]\nconfigMapGenerator: [{name: m, files: [chosen.yaml]}]\n"
    (root / "web" / "kustomization.yaml").write_text(text)
    (root / "web" / "chosen.yaml").write_text("a: 1\n")
    return Finder(partial(overlay_key, Overlay(root=root, path="web"), "v1"))


def pass_a_tick(path: Path) -> None:
    """Wait until the file system's clock has moved on since a file was changed."""
    while file_system_time() <= path.stat().st_ctime_ns:
        pass


def edit_unseen(path: Path) -> None:
    """As many bytes as before, and the time of before."""
    pass_a_tick(path)
    seen = path.stat()
    path.write_text(path.read_text().swapcase())
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


@pytest.mark.parametrize("write", [a_chart, an_overlay])
def test_unchanged_inputs_are_not_read_again(
    write: Callable[[Path], Finder], tmp_path: Path
) -> None:
    finder = write(tmp_path)

    first = finder.find()
    (tmp_path / "README.md").write_text("not an input")
    second = finder.find()

    assert first == second
    assert finder.computed == 1


def relink(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


CHANGES: dict[str, tuple[Callable[[Path], Finder], Callable[[Path], object]]] = {
    "a template": (a_chart, lambda root: edit_unseen(root / "web/templates/config.yaml")),
    "a new template": (a_chart, lambda root: (root / "web/templates/new.yaml").write_text("")),
    "values through two links": (a_chart, lambda root: edit_unseen(root / "values/prod.yaml")),
    "a link to other values": (a_chart, lambda root: relink(root / "chosen.yaml", "absent")),
    "a file that was not there": (a_chart, lambda root: (root / "absent.yaml").write_text("a: 1")),
    "a manifest": (an_overlay, lambda root: edit_unseen(root / "base/config.yaml")),
    "an input": (an_overlay, lambda root: edit_unseen(root / "web/chosen.yaml")),
    "a link to another base": (an_overlay, lambda root: relink(root / "web/linked", "../other")),
    "a second kustomization": (
        an_overlay,
        lambda root: (root / "base/Kustomization").write_text("{}"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(change: str, tmp_path: Path) -> None:
    write, make_change = CHANGES[change]
    finder = write(tmp_path)
    (tmp_path / "other").mkdir()
    text = f"resources: [c.yaml]\nnamePrefix: other-\n# {change}"
    (tmp_path / "other" / "kustomization.yaml").write_text(text)
    (tmp_path / "other" / "c.yaml").write_text(CONFIG.format(name="c"))
    before = finder.find()

    make_change(tmp_path)
    try:
        after = finder.find()
    except RenderError:
        after = ""  # an error shows that the change was noticed

    assert after != before
    assert finder.computed == 2


def test_a_directory_that_replaces_another_is_noticed(tmp_path: Path) -> None:
    for name, text in (("one", "a: 1\n"), ("two", "a: 2\n")):
        chart = write_chart(tmp_path / name / "web")
        (chart / "values.yaml").write_text(text)
    (tmp_path / "current").symlink_to("one")
    release = ChartRequest(root=str(tmp_path / "current"), chart="web", name="web")
    finder = Finder(partial(release_key, release))
    before = finder.find()

    relink(tmp_path / "current", "two")

    assert finder.find() != before


def test_an_input_that_has_just_changed_is_read_again(tmp_path: Path) -> None:
    finder = a_chart(tmp_path)
    finder.keys = KeyCache(now=file_system_time)

    finder.find()
    finder.find()

    assert finder.computed == 2


def write_component(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "kustomization.yaml").write_text("kind: Component\nnamePrefix: p-\n")


def test_patterns_of_components_are_evaluated_each_time(tmp_path: Path) -> None:
    an_overlay(tmp_path)
    overrides = ArgoOverrides(components=("parts/*",))
    overlay = Overlay(root=tmp_path, path="web", overrides=overrides)
    finder = Finder(partial(overlay_key, overlay, "v1"))

    write_component(tmp_path / "web" / "parts" / "a")
    before = finder.find()
    write_component(tmp_path / "web" / "parts" / "b")
    after = finder.find()

    assert before != after
    assert finder.computed == 2


def test_the_number_of_cached_keys_is_limited() -> None:
    keys = KeyCache(now=later, max_keys=2)
    computed: list[bytes] = []

    def make(name: bytes, _inputs: CacheInputs) -> str:
        computed.append(name)
        return name.decode()

    for name in (b"a", b"b", b"a", b"c", b"a", b"b"):
        keys.find(name, partial(make, name))

    assert computed == [b"a", b"b", b"c", b"b"]


def test_requests_that_differ_have_different_texts(tmp_path: Path) -> None:
    overlay = Overlay(root=tmp_path)
    requests: list[Overlay | ChartRequest] = [
        overlay,
        Overlay(root=tmp_path / "other"),
        Overlay(root=tmp_path, overrides=ArgoOverrides()),
        Overlay(root=tmp_path, overrides=FluxOverrides()),
        ChartRequest(root=str(tmp_path), name="a"),
        ChartRequest(root=str(tmp_path), name="a", values={"a": 1}),
        ChartRequest(root=str(tmp_path), name="a", values={"a": 1.0}),
        ChartRequest(root=str(tmp_path), name="a", values={"a": "1"}),
    ]

    texts = {request_text(request) for request in requests}

    assert len(texts) == len(requests)
    assert request_text(Overlay(root=tmp_path)) == request_text(overlay)
