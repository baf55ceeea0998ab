"""Rendered objects in the cache, and the keys by which they are found again."""

from __future__ import annotations

import shutil
import stat
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from tests.support.helm_charts import write_chart
from tidegate.documents import Document, read_documents
from tidegate.errors import ConfigError, Location, RenderError, SourceError
from tidegate.model.units.chart_request import (
    ChartDependency,
    ChartRequest,
    FetchedChart,
    FileParameter,
    InlineValues,
    Parameter,
    ValuesFile,
    ValuesText,
)
from tidegate.render.cache.keys import program_version, release_key
from tidegate.render.cache.local_key import LocalKey
from tidegate.render.cache.store import RenderCache

NO_KEY = LocalKey({"HOME": "/nowhere"})
OUR_KEY = LocalKey({"TIDEGATE_KEY": "0123456789abcdef"})
OTHER_KEY = LocalKey({"TIDEGATE_KEY": "fedcba9876543210"})
SECRET = {
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: hunter2}\n",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: hunter2\n",
    "apiVersion: v1\nkind: secret\nmetadata: {name: a}\nstringdata: {pin: hunter2}\n",
    "kind: Application\nspec: {source: {repoURL: 'https://hunter2@host/a'}}\n",
}
SOURCE = """apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1", x: "2"}}
- {kind: Thing, metadata: {name: b}, spec: {a: 1, b: 1.0, c: 9223372036854775807, d: null}}
"""


@dataclass(slots=True)
class Texts:
    """A store in memory."""

    entries: dict[str, bytes] = field(default_factory=dict)

    def write(self, name: str, text: bytes) -> None:
        self.entries[name] = text

    def read(self, name: str) -> bytes | None:
        return self.entries.get(name)


class FullDisk:
    """A store that cannot be written."""

    def write(self, name: str, text: bytes) -> None:
        del name, text
        raise SourceError("source.cache", "the disk is full")

    def read(self, name: str) -> bytes | None:
        del name
        return None


def a_release(place: Path) -> ChartRequest:
    chart = place / "web"
    if not chart.exists():
        write_chart(chart, values="a: 1\n")
        (place / "prod.yaml").write_text("a: 2\n")
        (place / "motd").write_text("hello")
    return ChartRequest(
        root=str(place),
        chart="web",
        name="shop",
        layers=(ValuesFile("../prod.yaml"), InlineValues(), FileParameter("motd", "/motd")),
    )


def test_objects_are_restored_with_their_locations() -> None:
    documents = read_documents(SOURCE, "shop.yaml")
    cache = RenderCache(Texts(), NO_KEY)

    cache.store("key", documents)

    result = cache.find("key")
    assert result == documents
    assert [repr(item.body) for item in result] == [repr(document.body) for document in documents]
    assert [item.location.line for item in result] == [4, 5]
    assert result[0].duplicates[0].path == ("data", "x")
    assert cache.has_grown


def test_an_unknown_key_and_a_damaged_entry_are_not_found() -> None:
    store = Texts()
    cache = RenderCache(store, NO_KEY)
    cache.store("key", read_documents(SOURCE, "shop.yaml"))
    store.entries = dict.fromkeys(store.entries, b"damaged")

    assert cache.find("key") is None
    assert cache.find("other") is None
    assert cache.find_dependencies("key") == ()


def test_dependencies_of_a_chart_are_stored() -> None:
    needs = (ChartDependency("queue", "^1", "https://charts.example.com"),)
    cache = RenderCache(Texts(), NO_KEY)

    cache.store_dependencies("key", needs)

    assert cache.find_dependencies("key") == needs
    assert cache.find("key") is None


def contents(store: Texts) -> bytes:
    texts = (
        text + part
        for name, part in store.entries.items()
        for text in (name.encode(), part, _unpacked(part))
    )
    return b"".join(texts)


def _unpacked(part: bytes) -> bytes:
    try:
        return zlib.decompress(part)
    except zlib.error:
        return b""


@pytest.mark.parametrize("text", sorted(SECRET))
def test_an_entry_with_a_secret_is_encrypted(text: str) -> None:
    store, documents = Texts(), read_documents(text, "secret.yaml")

    RenderCache(store, OUR_KEY).store("key", documents)

    assert RenderCache(store, OUR_KEY).find("key") == documents
    assert RenderCache(store, OTHER_KEY).find("key") is None
    assert RenderCache(store, NO_KEY).find("key") is None
    assert b"hunter2" not in contents(store)


def test_an_entry_with_a_secret_is_not_stored_without_encryption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Texts()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)

    for text in SECRET:
        RenderCache(store, OUR_KEY).store("key", read_documents(text, "secret.yaml"))

    assert store.entries == {}


def test_a_repository_with_a_token_in_its_url_is_encrypted() -> None:
    store = Texts()
    needs = (ChartDependency("queue", "^1", "https://hunter2@charts.example.com"),)

    RenderCache(store, OUR_KEY).store_dependencies("key", needs)

    assert RenderCache(store, OUR_KEY).find_dependencies("key") == needs
    assert b"hunter2" not in contents(store)


def test_an_entry_that_is_too_large_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.render.cache.store.MAX_SIZE", 1_000)
    store = Texts()
    cache = RenderCache(store, OUR_KEY)
    cache.store("key", [Document({"a": "x" * 100_000}, Location("a"))])

    assert cache.find("key") is None


def test_a_key_is_created_once_and_only_for_its_user(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}

    assert LocalKey(environment).find() is None
    made = LocalKey(environment).find_or_create()

    assert made is not None
    assert LocalKey(environment).find() == made
    (file,) = (tmp_path / "tidegate").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_key_that_cannot_be_stored_is_not_created(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "nowhere")}

    assert LocalKey(environment).find_or_create() is None
    assert [*tmp_path.iterdir()] == []


def test_a_key_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        LocalKey({"TIDEGATE_KEY": "hunter2"}).find_or_create()

    assert raised.value.code == "config.key"
    assert "hunter2" not in str(raised.value)


def test_a_full_disk_is_no_error() -> None:
    cache = RenderCache(FullDisk(), NO_KEY)

    cache.store("key", read_documents(SOURCE, "shop.yaml"))

    assert not cache.has_grown


def test_a_number_that_json_cannot_hold_is_not_stored() -> None:
    store = Texts()

    RenderCache(store, NO_KEY).store("key", [Document({"n": 2**70}, Location("a"))])

    assert store.entries == {}


def test_a_key_does_not_depend_on_the_path_of_the_chart(tmp_path: Path) -> None:
    release = a_release(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there")

    elsewhere = msgspec.structs.replace(release, root=str(tmp_path / "there"))

    assert release_key(elsewhere) == release_key(release)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.2.0\n"),
        ("web/values.yaml", "a: 3\n"),
        ("web/templates/config.yaml", "kind: Other\n"),
        ("web/templates/new.yaml", "kind: Other\n"),
        ("web/charts/db/Chart.yaml", "name: db\n"),
        ("prod.yaml", "a: 4\n"),
        ("motd", "good bye"),
    ],
)
def test_every_file_that_is_read_counts(tmp_path: Path, path: str, text: str) -> None:
    release = a_release(tmp_path)
    before = release_key(release)

    write(tmp_path / path, text)

    assert release_key(release) != before


def test_a_removed_or_renamed_file_counts(tmp_path: Path) -> None:
    release = a_release(tmp_path)
    keys = {release_key(release)}

    (tmp_path / "prod.yaml").unlink()
    keys.add(release_key(release))
    (tmp_path / "web" / "values.yaml").rename(tmp_path / "web" / "other.yaml")
    keys.add(release_key(release))

    assert len(keys) == 3


def test_a_file_that_is_not_read_does_not_count(tmp_path: Path) -> None:
    release = a_release(tmp_path)
    before = release_key(release)

    (tmp_path / "README.md").write_text("read me")

    assert release_key(release) == before


@pytest.mark.parametrize(
    "other",
    [
        {"name": "other"},
        {"namespace": "other"},
        {"values": {"a": 1}},
        {"layers": (InlineValues(), Parameter("a", "1"))},
        {"layers": (ValuesText("a: 1", "text"),)},
        {"kube_version": "v1.30.0"},
        {"api_versions": ("a/v1",)},
        {"include_crds": False},
        {"is_upgrade": True},
        {"skip_schema": True},
    ],
)
def test_every_option_counts(tmp_path: Path, other: dict[str, object]) -> None:
    release = a_release(tmp_path)

    changed = msgspec.structs.replace(release, **other)

    assert release_key(changed) != release_key(release)


def test_a_fetched_chart_counts_by_its_content(tmp_path: Path) -> None:
    need = ChartDependency("queue", "^1", "https://charts.example.com")
    first, second = write_chart(tmp_path / "one" / "queue"), write_chart(tmp_path / "two" / "queue")
    release = a_release(tmp_path / "source")

    with_first = msgspec.structs.replace(release, fetched=(FetchedChart(need, str(first)),))
    with_second = msgspec.structs.replace(release, fetched=(FetchedChart(need, str(second)),))
    same = release_key(with_first) == release_key(with_second)
    (second / "values.yaml").write_text("a: 9")

    assert same
    assert release_key(with_first) != release_key(with_second)
    assert release_key(with_first) != release_key(release)


def test_all_files_of_a_pattern_are_inputs(tmp_path: Path) -> None:
    release = msgspec.structs.replace(
        a_release(tmp_path), layers=(ValuesFile("../envs/*.yaml"), InlineValues())
    )
    write(tmp_path / "envs/a.yaml", "a: 1\n")
    before = release_key(release)

    write(tmp_path / "envs/b.yaml", "a: 2\n")

    assert release_key(release) != before


def test_a_neighbour_that_is_a_dependency_counts(tmp_path: Path) -> None:
    release = a_release(tmp_path)
    needs = "dependencies:\n- {name: db, version: 0.1.0, repository: 'file://../db'}\n"
    with (tmp_path / "web" / "Chart.yaml").open("a") as chart:
        chart.write(needs)
    write_chart(tmp_path / "db")
    before = release_key(release)

    write(tmp_path / "db/values.yaml", "a: 5\n")

    assert release_key(release) != before


def test_links_are_followed_inside_the_source_and_never_out_of_it(tmp_path: Path) -> None:
    release = a_release(tmp_path / "source")
    web = tmp_path / "source" / "web"
    (tmp_path / "source" / "shared").mkdir()
    (web / "shared").symlink_to("../shared")
    before = release_key(release)
    write(tmp_path / "source/shared/a.yaml", "a: 1\n")

    after = release_key(release)
    (web / "outside").symlink_to("/etc")

    assert after != before
    with pytest.raises(RenderError) as caught:
        release_key(release)
    assert caught.value.code == "render.helm.outside"


def test_another_program_of_the_same_name_is_another_version(tmp_path: Path) -> None:
    program = tmp_path / "kustomize"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    before = program_version((str(program), "build"))

    program.write_text("#!/bin/sh\ntrue\n")

    assert program_version((str(program), "build")) != before
    assert program_version((str(program), "other")) != program_version((str(program), "build"))
