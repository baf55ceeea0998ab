"""`tidegate render` of Git repositories: who opens them, and what they cannot make us do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_server import GitServer, Repository
from tests.support.tidegate_command import Tidegate
from tests.support.web_files import CONFIG
from tests.support.web_server import listening

HELPER = """[credential]
    helper = "!answer() { echo username=git; echo password=sesame; }; answer"
"""


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


async def serve_shop(place: Path) -> None:
    shop = await Repository.create(place / "acme" / "shop.git")
    await shop.commit(apps__web_yaml=CONFIG.format(name="web"))


async def test_the_credential_helper_of_the_user_is_used(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    await serve_shop(tmp_path / "served")
    tidegate.user_home.mkdir()
    server = GitServer(tmp_path / "served", password="sesame")
    async with listening(server.app()) as url:
        locked = await tidegate.run("render", f"{url}/acme/shop.git//apps", "-o", "names")
        (tidegate.user_home / ".gitconfig").write_text(HELPER)
        opened = await tidegate.run("render", f"{url}/acme/shop.git//apps", "-o", "names")

    assert locked.code == 3
    assert "error[source.git.credentials]" in locked.stderr
    assert (opened.lines, opened.stderr) == (["v1 ConfigMap web"], "")


async def test_submodules_are_fetched_only_if_enabled(tidegate: Tidegate, tmp_path: Path) -> None:
    inner = await Repository.create(tmp_path / "served" / "acme" / "inner.git")
    await inner.commit(b_yaml=CONFIG.format(name="inner"))
    outer = await Repository.create(tmp_path / "served" / "acme" / "outer.git")
    await outer.commit(a_yaml=CONFIG.format(name="outer"))
    await outer.git("submodule", "--quiet", "add", inner.url, "lib")
    async with listening(GitServer(tmp_path / "served").app()) as url:
        await outer.git("config", "-f", ".gitmodules", "submodule.lib.url", f"{url}/acme/inner.git")
        await outer.commit()
        plain = await tidegate.run("render", f"{url}/acme/outer.git", "-o", "names")
        whole = await tidegate.run("render", f"{url}/acme/outer.git?submodules=1", "-o", "names")

    assert (plain.lines, plain.stderr) == (["v1 ConfigMap outer"], "")
    assert (whole.lines, whole.stderr) == (["v1 ConfigMap outer", "v1 ConfigMap inner"], "")


@pytest.mark.parametrize(
    "address",
    [
        "--upload-pack=touch ran",
        "ext::sh -c touch% ran%",
        "git::ext::sh -c touch% ran%/acme/shop",
        "git@-oProxyCommand=touch ran:acme/shop.git",
        "ssh://-oProxyCommand=touch%20ran/acme/shop.git",
        "https://user:canary@127.0.0.1:1/acme/shop.git",
        "https://127.0.0.1:1/acme/shop.git?ref=--upload-pack=touch ran",
    ],
)
async def test_an_invalid_url_starts_no_program(
    tidegate: Tidegate, tmp_path: Path, address: str
) -> None:
    ran = await tidegate.run("render", "--", address, cwd=tmp_path)

    assert (ran.code, ran.stdout) == (3, "")
    assert ran.stderr.startswith(("error[source.", "error[render.path]"))
    assert "canary" not in ran.stderr
    assert not (tmp_path / "ran").exists()
