"""Rendering units: what is kept, what is never kept, and where secrets are while they are open."""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.helm_charts import a_release, data_of, names_of, write_chart
from tests.support.sops_program import AgeKey, encrypt
from tidegate.errors import RenderError, SourceError
from tidegate.external.process import MIB
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.rendering import Directory, Overlay
from tidegate.render.kustomize import Builder, build
from tidegate.source import Cache, CacheEntryKind
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.decryption import Decryption
from tidegate.workspace.rendering.overlays import render_request
from tidegate.workspace.rendering.result import RenderResult, require_deployable

CANARY = "kea-winters-in-the-alps"
# Replaces kustomize, and records its working directory.
WITNESS = """#!{python}
import json, os, sys
found = dict(place=os.getcwd(), mode=os.stat(".").st_mode & 0o777, token=open("tree/token").read())
with open({report!r}, "w") as report:
    json.dump(found, report)
print("apiVersion: v1\\nkind: ConfigMap\\nmetadata:\\n  name: a")
"""


@pytest.fixture
def setting(tmp_path: Path) -> RenderSettings:
    return RenderSettings(cache=Cache(tmp_path / "cache"), offline=True)


def kept(setting: RenderSettings) -> int:
    return next(stat.count for stat in setting.cache.stats() if stat.kind is CacheEntryKind.RENDERS)


def is_gone(place: str) -> bool:
    return not Path(place).exists()


async def rendered(
    unit: ChartRequest | Overlay | Directory, setting: RenderSettings
) -> RenderResult:
    async with RenderContext(setting) as workshop:
        return await render_request(unit, workshop)


async def test_private_results_are_not_cached(setting: RenderSettings, tmp_path: Path) -> None:
    write_chart(tmp_path / "web")
    release = a_release("web", root=tmp_path)

    async with RenderContext(setting) as workshop:
        first = await render_request(release, workshop, use_cache=False)
        before = kept(setting)
        second = await render_request(release, workshop)

    assert (before, kept(setting)) == (0, 1)
    assert second == first


async def test_a_directory_is_read_each_time(setting: RenderSettings, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")

    result = await rendered(Directory(root=tmp_path), setting)

    assert len(result.documents) == 1
    assert kept(setting) == 0


async def test_a_value_that_helm_writes_as_a_float_stays_one(
    setting: RenderSettings, tmp_path: Path
) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {a: 1.0, b: 1, c: 1e3}\n"
    write_chart(tmp_path / "web", template=body)
    release = a_release("web", root=tmp_path)

    first = await rendered(release, setting)
    again = await rendered(release, setting)

    assert repr(data_of(again.documents)) == repr(data_of(first.documents))


async def test_the_cache_stays_within_its_limit(tmp_path: Path) -> None:
    setting = RenderSettings(cache=Cache(tmp_path / "cache", limit=0), offline=True)
    write_chart(tmp_path / "web")

    result = await rendered(a_release("web", root=tmp_path), setting)

    assert len(result.documents) == 1
    assert kept(setting) == 0


async def test_decrypted_generator_inputs_are_in_a_private_temporary_directory(
    tmp_path: Path,
) -> None:
    key = AgeKey.generate()
    tree, report, program = tmp_path / "tree", tmp_path / "report", tmp_path / "witness"
    tree.mkdir()
    (tree / "kustomization.yaml").write_text("secretGenerator:\n- {name: a, files: [token]}\n")
    (tree / "token").write_bytes(encrypt(tree / "token", CANARY, key))
    program.write_text(WITNESS.format(python=sys.executable, report=str(report)))
    program.chmod(0o755)
    unsealing = Decryption(key.keys)

    await build(Overlay(root=tree), tool=Builder((str(program),)), decrypt=unsealing.decrypt_input)

    document = json.loads(report.read_bytes())
    assert (document["mode"], document["token"]) == (0o700, CANARY)
    assert is_gone(document["place"])
    if sys.platform == "linux":
        assert document["place"].startswith("/dev/shm/")  # noqa: S108  (nothing is written there)
    assert unsealing.has_encrypted_inputs
    assert CANARY not in repr(unsealing)


async def test_the_secret_of_a_patch_is_hidden_wherever_it_went(
    setting: RenderSettings, tmp_path: Path
) -> None:
    key = AgeKey.generate()
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n"
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "kustomization.yaml").write_text(
        "resources: [web.yaml]\npatches: [{path: patch.yaml}]\n"
        "replacements:\n- source: {kind: ConfigMap, name: web, fieldPath: data.motto}\n"
        "  targets:\n  - select: {kind: ConfigMap, name: other}\n    fieldPaths: [data.copy]\n"
    )
    (tree / "web.yaml").write_text(
        f"{head}data: {{a: b}}\n---\n{head.replace('web', 'other')}data: {{copy: x}}\n"
    )
    patch = f"{head}data:\n  motto: {CANARY}\n"
    (tree / "patch.yaml").write_bytes(
        encrypt(tree / "patch.yaml", patch, key, "--encrypted-regex", "^data$")
    )

    async with RenderContext(setting) as workshop:
        request = await render_request(Overlay(root=tree), workshop, keys=key.keys)

    hidden = dict(zip(names_of(request.documents), request.secret_fields, strict=True))
    assert hidden == {
        "ConfigMap web": (("data", "motto"),),
        "ConfigMap other": (("data", "copy"),),
    }
    assert kept(setting) == 0


async def test_placeholders_and_modified_files_are_not_applied(
    setting: RenderSettings, tmp_path: Path
) -> None:
    key, rule = AgeKey.generate(), ("--encrypted-regex", "^stringData$")
    secret = tmp_path / "manifests" / "secret.yaml"
    secret.parent.mkdir()
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n"
    sealed = encrypt(secret, text, key, *rule)
    directory = Directory(root=secret.parent)
    opened = replace(setting, keys=key.keys)

    secret.write_bytes(sealed)
    sound, locked = await rendered(directory, opened), await rendered(directory, setting)
    secret.write_bytes(sealed.replace(b"name: a", b"name: b"))
    changed = await rendered(directory, opened)

    require_deployable(sound)
    require_deployable(changed, ignore_sops_mac=True)
    for item, code in ((locked, "render.sops.key"), (changed, "render.sops.mac")):
        with pytest.raises(RenderError) as caught:
            require_deployable(item)
        assert caught.value.code == code


async def test_a_unit_whose_source_cannot_be_fetched_is_not_applied(
    setting: RenderSettings, tmp_path: Path
) -> None:
    far = "dependencies:\n- {name: db, version: 1.x, repository: 'https://charts.example.com'}\n"
    write_chart(tmp_path / "web", chart=far)

    result = await rendered(a_release("web", root=tmp_path), setting)

    assert len(result.documents) == 1
    with pytest.raises(SourceError) as caught:
        require_deployable(result)
    assert caught.value.code == "source.offline"


async def test_many_renders_do_not_grow_us(setting: RenderSettings, tmp_path: Path) -> None:
    charts = [write_chart(tmp_path / f"web{number}") for number in range(5)]
    releases = [a_release(chart.name, root=tmp_path) for chart in charts]
    async with RenderContext(setting) as workshop:
        for _ in range(30):
            await render_each(releases, workshop)
        gc.collect()
        before = own_memory()
        for _ in range(100):
            await render_each(releases, workshop)
        gc.collect()

        assert own_memory() - before < 8 * MIB


async def render_each(releases: list[ChartRequest], workshop: RenderContext) -> None:
    """Anew each time: what is kept is thrown away."""
    for release in releases:
        await render_request(release, workshop)
    workshop.settings.cache.clear(kinds=frozenset({CacheEntryKind.RENDERS}))


def own_memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
