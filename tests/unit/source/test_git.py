"""Fetching commits with the real git, from files, over HTTP and over ssh."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from tests.support.git_server import GitServer, Repository
from tests.support.source_access import an_access
from tests.support.web_server import listening
from tidegate.errors import SourceError
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.source import Credentials, GitRef, GitRefKind, GitSource
from tidegate.source.credentials import OriginCredentials
from tidegate.source.git.fetch import fetch_git
from tidegate.source.tree import TreeLimits


async def test_head_is_the_default_branch(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    commit = await repo.commit(app__web_yaml="kind: Service\n", run_sh="true\n")

    git = await fetch_git(GitSource(repo.url), an_access(tmp_path))

    assert str(git.revision) == f"main@sha1:{commit}"
    assert git.files == ("app/web.yaml", "run.sh")
    assert (git.root / "app/web.yaml").read_text() == "kind: Service\n"
    assert not (git.root / ".git").exists()


async def test_every_way_to_name_a_commit_finds_it(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    first = await repo.commit(a_yaml="one")
    await repo.git("tag", "--annotate", "--message=x", "v1.2.0")
    await repo.git("tag", "chart-1.1.0")
    await repo.commit(a_yaml="two")
    third = await repo.commit(a_yaml="three")
    await repo.git("branch", "feature/x")
    await repo.git("tag", "v2.0.0-rc.1")
    access = an_access(tmp_path)
    expected = {
        GitRef(GitRefKind.BRANCH, "feature/x"): ("feature/x", third),
        GitRef(GitRefKind.TAG, "v1.2.0"): ("v1.2.0", first),
        GitRef(GitRefKind.NAME, "refs/heads/feature/x"): ("refs/heads/feature/x", third),
        GitRef(GitRefKind.RANGE, ">=1.0"): ("v1.2.0", first),
        GitRef(GitRefKind.RANGE, ">=1.0-0"): ("v2.0.0-rc.1", third),
        GitRef(GitRefKind.RANGE, "1.x", prefix="chart-"): ("chart-1.1.0", first),
        GitRef(GitRefKind.COMMIT, first): ("", first),
        GitRef(GitRefKind.COMMIT, third[:8]): ("", third),
        GitRef(GitRefKind.ANY, "feature/x"): ("feature/x", third),
        GitRef(GitRefKind.ANY, "v1.2.0"): ("v1.2.0", first),
        GitRef(GitRefKind.ANY, "1.*"): ("v1.2.0", first),
        GitRef(GitRefKind.ANY, first[:7]): ("", first),
        GitRef(GitRefKind.ANY, ""): ("main", third),
    }

    result = {}
    for at in expected:
        revision = (await fetch_git(GitSource(repo.url, at), access)).revision
        result[at] = (revision.name, revision.hex)

    assert result == expected


async def test_a_short_commit_that_no_ref_points_to_is_found_in_the_history(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a_yaml="one")
    middle = await repo.commit(a_yaml="two")
    await repo.commit(a_yaml="three")

    git = await fetch_git(
        GitSource(repo.url, GitRef(GitRefKind.ANY, middle[:9])), an_access(tmp_path)
    )

    assert git.revision.hex == middle
    assert (git.root / "a.yaml").read_text() == "two"


async def test_a_missing_ref_is_reported(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a_yaml="one")
    access = an_access(tmp_path)
    expected = (
        GitRef(GitRefKind.BRANCH, "nowhere"),
        GitRef(GitRefKind.RANGE, "^7"),
        GitRef(GitRefKind.COMMIT, "dead" * 10),
        GitRef(GitRefKind.ANY, "deadbeef"),
        GitRef(GitRefKind.ANY, "nowhere"),
    )

    codes = []
    for at in expected:
        with pytest.raises(SourceError) as caught:
            await fetch_git(GitSource(repo.url, at), access)
        codes.append(caught.value.code)

    assert codes == ["source.git.ref.missing"] * len(expected)


async def test_a_repository_with_long_names_of_commits_is_read_too(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop", "--object-format=sha256")
    first = await repo.commit(a_yaml="one")
    await repo.commit(a_yaml="two")

    git = await fetch_git(
        GitSource(repo.url, GitRef(GitRefKind.COMMIT, first[:10])), an_access(tmp_path)
    )

    assert str(git.revision) == f"sha256:{first}"
    assert (git.root / "a.yaml").read_text() == "one"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (GitRefKind.BRANCH, "--upload-pack=touch x"),
        (GitRefKind.TAG, "-v1"),
        (GitRefKind.NAME, "refs/heads/main:refs/heads/x"),
        (GitRefKind.ANY, "main~1"),
        (GitRefKind.ANY, "a..b"),
        (GitRefKind.COMMIT, "HEAD"),
        (GitRefKind.BRANCH, ""),
    ],
)
async def test_a_ref_cannot_be_an_option_or_an_expression(
    tmp_path: Path, kind: GitRefKind, text: str
) -> None:
    source = GitSource("https://localhost/shop", GitRef(kind, text))

    with pytest.raises(SourceError) as caught:
        await fetch_git(source, an_access(tmp_path))

    assert caught.value.code == "source.git.ref"


async def test_http_with_a_required_password(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "served" / "shop")
    await repo.commit(a_yaml="one")
    server = GitServer(tmp_path / "served", password="open sesame")
    async with listening(server.app()) as origin:
        keys = OriginCredentials(
            origin, Credentials(username="git", password=SecretValue("open sesame"))
        )

        git = await fetch_git(GitSource(f"{origin}/shop/.git"), an_access(tmp_path, keyring=keys))

    assert git.files == ("a.yaml",)
    assert not any("sesame" in path for path in server.requests)


async def test_without_the_password_the_error_has_a_hint(tmp_path: Path) -> None:
    await Repository.create(tmp_path / "served" / "shop")
    server = GitServer(tmp_path / "served", password="open sesame")
    async with listening(server.app()) as origin:
        with pytest.raises(SourceError) as caught:
            await fetch_git(GitSource(f"{origin}/shop/.git"), an_access(tmp_path))

    assert caught.value.code == "source.git.credentials"
    assert "TIDEGATE_TOKEN" in caught.value.hint


async def test_credentials_of_one_host_are_not_sent_to_another(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "served" / "shop")
    await repo.commit(a_yaml="one")
    server = GitServer(tmp_path / "served")
    keys = OriginCredentials(
        "https://elsewhere", Credentials(username="git", password=SecretValue("sesame"))
    )
    async with listening(server.app()) as origin:
        await fetch_git(GitSource(f"{origin}/shop/.git"), an_access(tmp_path, keyring=keys))

    assert set(server.seen) == {""}


async def test_a_redirect_to_another_host_does_not_take_the_password_along(tmp_path: Path) -> None:
    await Repository.create(tmp_path / "served" / "shop")
    thief = GitServer(tmp_path / "served", password="something else")
    async with listening(thief.app()) as elsewhere:

        async def send_on(request: web.Request) -> web.Response:
            raise web.HTTPFound(elsewhere + request.path_qs)

        honest = web.Application()
        honest.router.add_get("/{path:.*}", send_on)
        async with listening(honest) as origin:
            keys = OriginCredentials(
                origin, Credentials(username="git", password=SecretValue("open sesame"))
            )
            with pytest.raises(SourceError):
                await fetch_git(GitSource(f"{origin}/shop/.git"), an_access(tmp_path, keyring=keys))

    assert thief.requests
    assert set(thief.seen) == {""}


async def test_a_bearer_token_is_sent_as_a_header(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "served" / "shop")
    await repo.commit(a_yaml="one")
    server = GitServer(tmp_path / "served")
    async with listening(server.app()) as origin:
        keys = OriginCredentials(origin, Credentials(token=SecretValue("t")))
        await fetch_git(GitSource(f"{origin}/shop/.git"), an_access(tmp_path, keyring=keys))

    assert set(server.seen) == {"Bearer t"}


async def test_a_server_that_only_gives_files_is_read_too(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    commit = await repo.commit(a_yaml="one")
    await repo.git("update-server-info")
    app = web.Application()
    app.router.add_static("/", repo.path)
    async with listening(app) as origin:
        git = await fetch_git(GitSource(f"{origin}/.git"), an_access(tmp_path))

    assert git.revision.hex == commit
    assert git.files == ("a.yaml",)


async def test_ssh_runs_the_command_that_the_environment_names(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a_yaml="one")
    script = tmp_path / "ssh"
    script.write_text('#!/bin/sh\nfor last; do :; done\neval "$last"\n')
    script.chmod(0o755)
    variables = {"GIT_SSH_COMMAND": str(script), "GIT_SSH_VARIANT": "ssh"}

    git = await fetch_git(
        GitSource(f"git@example.com:{repo.path}"), an_access(tmp_path, environment=variables)
    )

    assert git.files == ("a.yaml",)


async def test_a_missing_repository_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        await fetch_git(GitSource((tmp_path / "none").as_uri()), an_access(tmp_path))

    assert caught.value.code == "source.git.missing"


async def test_a_link_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    (repo.path / "inside").symlink_to("a.yaml")
    (repo.path / "leak").symlink_to("../../etc/passwd")
    await repo.commit(a_yaml="one")

    with pytest.raises(SourceError) as caught:
        await fetch_git(GitSource(repo.url), an_access(tmp_path))

    assert caught.value.code == "source.link"
    assert "`leak`" in caught.value.problem


async def test_a_link_into_a_local_repository_is_not_followed(tmp_path: Path) -> None:
    ours = await Repository.create(tmp_path / "ours")
    repo = await Repository.create(tmp_path / "shop")
    (repo.path / "link").symlink_to(ours.path)
    await repo.commit(a_yaml="one")

    with pytest.raises(SourceError):
        await fetch_git(GitSource(repo.url), an_access(tmp_path))

    assert (ours.path / ".git" / "HEAD").exists()


async def test_a_tree_beyond_the_limits_is_refused_before_it_is_written(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a_yaml="x" * 5000)

    with pytest.raises(SourceError) as caught:
        await fetch_git(GitSource(repo.url), an_access(tmp_path, limits=TreeLimits(file_size=4999)))

    assert caught.value.code == "source.size"


async def test_submodules_stay_empty_unless_they_are_requested(tmp_path: Path) -> None:
    inner = await Repository.create(tmp_path / "inner")
    await inner.commit(b_yaml="inner")
    outer = await Repository.create(tmp_path / "outer")
    await outer.git("submodule", "--quiet", "add", inner.url, "lib")
    await outer.commit(a_yaml="outer")

    plain = await fetch_git(GitSource(outer.url), an_access(tmp_path))
    deep = await fetch_git(GitSource(outer.url, submodules=True), an_access(tmp_path))

    assert plain.files == (".gitmodules", "a.yaml")
    assert deep.files == (".gitmodules", "a.yaml", "lib/b.yaml")


async def test_hooks_and_filters_of_the_repository_do_not_run(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a_yaml="one")
    (repo.path / ".gitattributes").write_text("* filter=evil\n*.yaml export-ignore\n")
    await repo.git("config", "filter.evil.smudge", "touch ran")
    await repo.git("config", "filter.evil.clean", "cat")
    await repo.git("add", "--all")
    await repo.git("commit", "--quiet", "--message=x")

    git = await fetch_git(GitSource(repo.url), an_access(tmp_path))

    assert git.files == (".gitattributes", "a.yaml")


async def test_offline_knows_what_was_fetched_before_and_nothing_else(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "shop")
    commit = await repo.commit(a_yaml="one")
    await repo.git("branch", "other")
    access = an_access(tmp_path)
    await fetch_git(GitSource(repo.url), access)
    os.rename(repo.path, tmp_path / "gone")  # noqa: PTH104  (git must not find it again)
    offline = msgspec.structs.replace(access, offline=True)

    same = await fetch_git(GitSource(repo.url, GitRef(GitRefKind.BRANCH, "other")), offline)
    with pytest.raises(SourceError) as caught:
        await fetch_git(GitSource("https://localhost/unknown"), offline)

    assert same.revision.hex == commit
    assert caught.value.code == "source.offline"
