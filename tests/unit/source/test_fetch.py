"""The choice of a fetcher, and when a working tree replaces its repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from tests.support.chart_archives import TarMaker
from tests.support.git_server import Repository
from tests.support.source_access import an_access
from tests.support.web_server import listening
from tidegate.errors import SourceError
from tidegate.model.units.source import (
    ChartSource,
    GitRef,
    GitRefKind,
    GitSource,
    LocalSource,
    OciSource,
    SourceRef,
)
from tidegate.source import (
    apply_ignore_rules,
    fetch,
    fetch_file,
    find_checkouts,
    with_digest,
)
from tidegate.source.fetch import uses_working_tree
from tidegate.source.local import read_repository_map
from tidegate.source.options import Checkout
from tidegate.source.web import FILE_NAME

OURS = "https://example.com/acme/shop"


async def test_a_directory_is_all_that_is_in_it(tmp_path: Path) -> None:
    place = tmp_path / "tree"
    (place / "app" / ".git").mkdir(parents=True)
    (place / "app" / "web.yaml").touch()
    (place / "app" / ".git" / "config").touch()
    (place / "inside").symlink_to("app/web.yaml")
    (place / "outside").symlink_to("/etc/passwd")
    (place / "circle").symlink_to("circle")
    (place / "too-long").symlink_to("x" * 300)

    result = await fetch(LocalSource(str(place)), an_access(tmp_path))

    assert result.files == ("app/web.yaml", "inside")
    assert result.escaping_links == ("outside",)
    assert result.root == place


async def test_a_working_tree_includes_new_files_and_excludes_ignored_ones(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    (repo.path / ".gitignore").write_text("venv/\n")
    await repo.commit(a_yaml="one", gone_yaml="x")
    (repo.path / "venv").mkdir()
    (repo.path / "venv/lib.yaml").touch()
    (repo.path / "new.yaml").touch()
    (repo.path / "gone.yaml").unlink()

    result = await fetch(LocalSource(str(repo.path)), an_access(tmp_path))

    assert result.files == (".gitignore", "a.yaml", "new.yaml")


async def test_an_archive_on_disk_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "shop.tgz").write_bytes(TarMaker().add("a.yaml", b"x").gz())

    result = await fetch(LocalSource(str(tmp_path / "shop.tgz")), an_access(tmp_path))

    assert result.files == ("a.yaml",)


@pytest.mark.parametrize("name", ["none", "file.txt"])
async def test_a_path_that_is_not_a_tree_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").touch()

    with pytest.raises(SourceError) as caught:
        await fetch(LocalSource(str(tmp_path / name)), an_access(tmp_path))

    assert caught.value.code == "source.local"


async def test_a_checkout_knows_its_remotes_and_its_branch(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a__b_yaml="one")
    await repo.git("remote", "add", "origin", "git@example.com:acme/shop.git")
    await repo.git("remote", "add", "fork", "https://example.com/ann/shop")

    checkouts = await find_checkouts(repo.path / "a", an_access(tmp_path))

    assert {checkout.url for checkout in checkouts} == {
        "git@example.com:acme/shop.git",
        "https://example.com/ann/shop",
    }
    assert {(checkout.path, checkout.branch) for checkout in checkouts} == {(repo.path, "main")}
    assert await find_checkouts(tmp_path, an_access(tmp_path)) == ()


async def test_our_own_repository_is_the_working_tree(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a_yaml="one")
    await repo.git("remote", "add", "origin", "git@example.com:acme/shop.git")
    (repo.path / "a.yaml").write_text("changed")
    checkouts = await find_checkouts(repo.path, an_access(tmp_path))
    source = GitSource(OURS, GitRef(GitRefKind.ANY, "main"))

    result = await fetch(source, an_access(tmp_path, checkouts=checkouts, offline=True))

    assert (result.root / "a.yaml").read_text() == "changed"
    assert result.source == source


async def test_a_tag_of_the_same_repository_is_read_from_the_checkout(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a_yaml="one")
    await repo.git("tag", "v1.0.0")
    await repo.commit(a_yaml="two")
    access = an_access(tmp_path, checkouts=(Checkout(OURS, repo.path),), offline=True)

    by_tag = await fetch(GitSource(OURS, GitRef(GitRefKind.ANY, "v1.0.0")), access)
    by_range = await fetch(GitSource(OURS, GitRef(GitRefKind.RANGE, "^1")), access)

    assert (by_tag.root / "a.yaml").read_text() == "one"
    assert by_range.root == by_tag.root


@pytest.mark.parametrize(
    ("at", "branch", "default", "expected"),
    [
        (GitRef(), "feature", "main", True),
        (GitRef(GitRefKind.ANY, "HEAD"), "feature", "main", True),
        (GitRef(GitRefKind.BRANCH, "feature"), "feature", "main", True),
        (GitRef(GitRefKind.BRANCH, "main"), "feature", "main", True),
        (GitRef(GitRefKind.BRANCH, "prod"), "feature", "main", False),
        (GitRef(GitRefKind.ANY, "prod"), "", "", True),
        (GitRef(GitRefKind.NAME, "refs/heads/main"), "main", "main", True),
        (GitRef(GitRefKind.TAG, "v1"), "main", "main", False),
        (GitRef(GitRefKind.ANY, "1.x"), "", "", False),
        (GitRef(GitRefKind.ANY, "0a1b2c3"), "", "", False),
    ],
)
def test_a_working_tree_replaces_its_branches(
    at: GitRef, branch: str, default: str, *, expected: bool
) -> None:
    checkout = Checkout(OURS, Path("/srv"), branch=branch, default_branch=default)

    assert uses_working_tree(GitSource(OURS, at), checkout) is expected


async def test_a_map_counts_for_every_revision(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.yaml").touch()
    checkout = read_repository_map(f"https://example.com/x={tmp_path / 'tree'}")
    source = GitSource("git@example.com:x.git", GitRef(GitRefKind.TAG, "v9"))

    result = await fetch(source, an_access(tmp_path, checkouts=(checkout,)))

    assert result.files == ("a.yaml",)


@pytest.mark.parametrize("text", ["", "https://example.com/x", "=path", "url="])
def test_an_invalid_map_is_reported(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_repository_map(text)

    assert caught.value.code == "source.map"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (GitSource("https://localhost/x"), "source.offline"),
        (ChartSource("https://localhost/charts", "web"), "source.offline"),
        (ChartSource("oci://localhost/charts", "web", "^1"), "source.offline"),
        (OciSource("oci://localhost/x"), "source.offline"),
        (GitSource("ext::sh"), "source.url"),
    ],
    ids=str,
)
async def test_offline_nothing_is_fetched(source: SourceRef, code: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        await fetch(source, an_access(tmp_path, offline=True))

    assert caught.value.code == code


async def test_excluded_files_are_not_in_the_tree(tmp_path: Path) -> None:
    place = tmp_path / "tree"
    (place / "docs").mkdir(parents=True)
    for name in ("app.yaml", "docs/a.yaml", "logo.png", "run.sh"):
        (place / name).write_text(name)
    (place / "run.sh").chmod(0o755)
    (place / "link").symlink_to("app.yaml")
    access = an_access(tmp_path)
    whole = await fetch(LocalSource(str(place)), access)

    part = await apply_ignore_rules(whole, "/docs/\n", access)

    assert part.files == ("app.yaml", "logo.png", "run.sh")
    assert not (part.root / "docs").exists()
    assert (part.root / "run.sh").stat().st_mode & 0o100
    assert (await apply_ignore_rules(whole, "/docs/\n", access)).root == part.root


async def test_the_digest_follows_names_contents_links_and_bits(tmp_path: Path) -> None:
    access = an_access(tmp_path)

    async def digest(name: str, text: str, *, mode: int = 0o644, link: str = "a") -> str:
        place = tmp_path / f"{name}{text}{mode}" / link.replace("/", "")
        place.mkdir(parents=True)
        (place / name).write_text(text)
        (place / name).chmod(mode)
        (place / "link").symlink_to(link)
        return (await with_digest(await fetch(LocalSource(str(place)), access))).digest

    same = await digest("a", "x")
    others = {
        await digest("b", "x"),
        await digest("a", "y"),
        await digest("a", "x", mode=0o755),
        await digest("a", "x", link="./a"),
    }
    again = await digest("a", "x", mode=0o600)

    assert again == same
    assert len(others - {same}) == 4


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (ChartSource("https://charts.example.com/", "web", "^9"), "web"),
        (OciSource("oci://registry.example.com/shop", tag="v9"), "."),
    ],
    ids=str,
)
async def test_a_repo_map_also_replaces_charts_and_artifacts(
    tmp_path: Path, source: SourceRef, path: str
) -> None:
    (tmp_path / "here" / "web").mkdir(parents=True)
    (tmp_path / "here" / "web" / "Chart.yaml").touch()
    maps = tuple(
        read_repository_map(f"{url}={tmp_path / 'here'}")
        for url in ("https://charts.example.com", "oci://registry.example.com/shop")
    )

    result = await fetch(source, an_access(tmp_path, offline=True, checkouts=maps))

    assert result.source == source
    assert result.root == tmp_path / "here" / path


@pytest.mark.parametrize("chart", ["../secret", "web/../../secret", "/etc", ""])
async def test_a_chart_is_read_below_the_directory_of_its_repository(
    tmp_path: Path, chart: str
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "here").mkdir()
    maps = (read_repository_map(f"https://charts.example.com={tmp_path / 'here'}"),)
    source = ChartSource("https://charts.example.com", chart)

    with pytest.raises(SourceError) as caught:
        await fetch(source, an_access(tmp_path, offline=True, checkouts=maps))

    assert caught.value.code == "source.chart.missing"


async def test_a_remote_file_is_revalidated_and_cached_for_offline(
    tmp_path: Path,
) -> None:
    texts = iter([b"one", b"two"])

    async def serve(_: web.Request) -> web.Response:
        return web.Response(body=next(texts))

    app = web.Application()
    app.router.add_get("/a.yaml", serve)
    async with listening(app) as url:
        address = f"{url}/a.yaml"
        read = [
            (await fetch_file(address, an_access(tmp_path))).root.joinpath(FILE_NAME).read_bytes()
            for _ in range(2)
        ]

    kept = await fetch_file(address, an_access(tmp_path, offline=True))
    with pytest.raises(SourceError) as caught:
        await fetch_file(f"{address}?other", an_access(tmp_path, offline=True))

    assert read == [b"one", b"two"]
    assert (kept.root / FILE_NAME).read_bytes() == b"two"
    assert caught.value.code == "source.offline"
