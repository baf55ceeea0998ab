"""`tidegate render` of what needs things from elsewhere: charts, bases, files; and offline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plane.identity.certificates import Authority
from tests.support.git_server import GitServer, Repository
from tests.support.helm_charts import write_chart
from tests.support.http_application import served
from tests.support.recorded_wording import RecordedWording
from tests.support.registry import FakeRegistry
from tests.support.tidegate_command import Tidegate
from tests.support.web_files import CONFIG, Files, packed
from tests.support.web_server import listening
from tidegate.source.tree import CHART_LAYER

KUSTOMIZATION = "resources: [config.yaml]\n"


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


def needs(name: str, repository: str, version: str = "^1.0") -> str:
    entry = f"- name: {name}\n  version: {version}\n  repository: {repository}\n"
    return f"dependencies:\n{entry}"


def write_overlay(place: Path, *resources: str) -> Path:
    place.mkdir(parents=True)
    listed = "".join(f"- {item}\n" for item in ("own.yaml", *resources))
    (place / "kustomization.yaml").write_text(f"resources:\n{listed}")
    (place / "own.yaml").write_text(CONFIG.format(name="own"))
    return place


async def test_a_dependency_is_fetched_from_its_repository_once(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    files = Files()
    files.add_chart("queue")
    async with listening(files.app()) as url:
        chart = write_chart(tmp_path / "web", chart=needs("queue", url))
        first = await tidegate.run("render", chart, "-o", "names")

    offline = await tidegate.run("render", chart, "-o", "names", "--offline")

    assert first.lines == ["v1 ConfigMap queue", "v1 ConfigMap web"]
    assert (offline.code, offline.lines) == (0, first.lines)
    assert not (chart / "charts").exists()


async def test_two_dependencies_on_the_same_chart_are_fetched_once(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    files = Files()
    files.add_chart("queue")
    async with listening(files.app()) as url:
        twice = needs("queue", url).removeprefix("dependencies:\n")
        dependencies = f"dependencies:\n{twice}  alias: first\n{twice}  alias: second\n"
        chart = write_chart(tmp_path / "web", chart=dependencies)
        ran = await tidegate.run("render", chart, "-o", "names")

    assert ran.code == 0
    assert "never awaited" not in ran.stderr


async def test_a_second_run_with_a_dependency_starts_no_worker(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    files = Files()
    files.add_chart("queue")
    async with listening(files.app()) as url:
        chart = write_chart(tmp_path / "web", chart=needs("queue", f"{url}/"))
        first = await tidegate.run("render", chart)
        second = await tidegate.run("render", chart)

    assert second.stdout == first.stdout
    # What is left is git, which says whose checkout this is.
    assert second.started < first.started
    assert files.requests.count("/queue.tgz") == 1


async def test_a_server_is_trusted_by_the_certificates_of_the_machine(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    files, authority = Files(), Authority(tmp_path)
    files.add_chart("queue")
    pair = authority.for_server("server", names=("127.0.0.1",))
    async with served(files.app(), certificate=pair.certificate, key=pair.key) as port:
        chart = write_chart(tmp_path / "web", chart=needs("queue", f"https://127.0.0.1:{port}"))
        refused = await tidegate.run("render", chart, "-o", "names")
        trusted = await tidegate.run(
            "render", chart, "-o", "names", SSL_CERT_FILE=str(authority.ca)
        )

    assert (refused.code, trusted.code) == (3, 0)
    assert "error[source.http.untrusted]" in refused.stderr
    assert trusted.lines == ["v1 ConfigMap queue", "v1 ConfigMap web"]


async def test_a_dependency_that_is_not_what_the_index_promises_is_refused(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    files = Files()
    files.add_chart("queue", digest="0" * 64)
    async with listening(files.app()) as url:
        chart = write_chart(tmp_path / "web", chart=needs("queue", url))
        ran = await tidegate.run("render", chart)

    assert (ran.code, ran.stdout) == (3, "")
    assert "error[source.digest]" in ran.stderr


async def test_a_dependency_is_fetched_from_a_registry(tidegate: Tidegate, tmp_path: Path) -> None:
    registry = FakeRegistry()
    registry.push("1.2.0", packed("web"), CHART_LAYER)
    async with listening(registry.app()) as url:
        repository = f"oci://{url.partition('://')[2]}/charts"
        chart = write_chart(tmp_path / "shop", chart=needs("web", repository))
        ran = await tidegate.run("render", chart, "-o", "names")

    assert ran.lines == ["v1 ConfigMap web", "v1 ConfigMap shop"]


async def test_offline_the_rest_of_a_chart_is_shown_and_the_unknown_part_is_reported(
    wording: RecordedWording, tidegate: Tidegate, tmp_path: Path
) -> None:
    chart = write_chart(tmp_path / "web", chart=needs("queue", "https://charts.example.com"))

    ran = await tidegate.run("render", chart, "-o", "names", "--offline")

    assert ran.code == 3
    assert ran.lines == ["v1 ConfigMap web"]
    wording(line for line in ran.stderr.splitlines() if "`queue`" in line)
    assert "error[source.offline]" in ran.stderr


async def test_a_chart_that_cannot_do_without_its_dependency_is_wholly_unknown(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    template = '{{ include "library.name" . }}'
    chart = write_chart(
        tmp_path / "web", template=template, chart=needs("library", "https://charts.example.com")
    )

    ran = await tidegate.run("render", chart, "--offline")

    assert (ran.code, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error[source.offline]")


async def test_an_unreachable_repository_is_named_by_its_url(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    repository = "http://127.0.0.1:9/charts"
    chart = write_chart(tmp_path / "web", chart=needs("queue", repository))

    ran = await tidegate.run("render", chart, "-o", "json")

    error = json.loads(ran.stderr)
    assert (ran.code, error["code"]) == (3, "source.http.unreachable")
    assert error["location"].startswith(repository)


async def test_a_repository_by_its_nickname_is_refused(tidegate: Tidegate, tmp_path: Path) -> None:
    chart = write_chart(tmp_path / "web", chart=needs("queue", "'@stable'"))

    ran = await tidegate.run("render", chart)

    assert ran.code == 3
    assert "error[render.helm.repository]" in ran.stderr


async def test_a_remote_base_is_fetched_once_and_used_offline(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    base = await Repository.create(tmp_path / "served" / "acme" / "base.git")
    await base.commit(
        web__kustomization_yaml=KUSTOMIZATION, web__config_yaml=CONFIG.format(name="v1")
    )
    server = GitServer(tmp_path / "served")
    async with listening(server.app()) as url:
        overlay = write_overlay(tmp_path / "overlay", f"{url}/acme/base.git//web?ref=main")
        online = await tidegate.run("render", overlay, "-o", "names")

    offline = await tidegate.run("render", overlay, "-o", "names", "--offline")

    assert (online.code, online.stderr) == (0, "")
    assert online.lines == ["v1 ConfigMap own", "v1 ConfigMap v1"]
    assert (offline.code, offline.lines) == (0, online.lines)


async def test_a_base_may_name_another_one(tidegate: Tidegate, tmp_path: Path) -> None:
    inner = await Repository.create(tmp_path / "served" / "acme" / "inner.git")
    await inner.commit(kustomization_yaml=KUSTOMIZATION, config_yaml=CONFIG.format(name="inner"))
    outer = await Repository.create(tmp_path / "served" / "acme" / "outer.git")
    async with listening(GitServer(tmp_path / "served").app()) as url:
        await outer.commit(kustomization_yaml=f"resources: ['{url}/acme/inner.git']\n")
        overlay = write_overlay(tmp_path / "overlay", f"{url}/acme/outer.git")

        ran = await tidegate.run("render", overlay, "-o", "names", "--origins")

    assert ran.lines == ["v1 ConfigMap inner", "v1 ConfigMap own"]


async def test_offline_the_rest_of_an_overlay_is_shown_and_the_unknown_part_is_reported(
    wording: RecordedWording, tidegate: Tidegate, tmp_path: Path
) -> None:
    address = "https://git.example.com/acme/base//web?ref=v1"
    overlay = write_overlay(tmp_path / "overlay", address)

    ran = await tidegate.run("render", overlay, "-o", "names", "--offline")

    assert ran.code == 3
    assert ran.lines == ["v1 ConfigMap own"]
    wording(line for line in ran.stderr.splitlines() if address in line)
    assert "error[source.offline]" in ran.stderr


async def test_every_base_that_cannot_be_fetched_is_reported(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    async with listening(Files().app()) as url:
        overlay = write_overlay(tmp_path / "overlay", f"{url}/a.yaml", f"{url}/b.yaml")
        ran = await tidegate.run("render", overlay)

    assert (ran.code, ran.stdout) == (3, "")
    assert ran.stderr.count("error[source.http.missing]") == 2


async def test_a_manifest_of_a_web_server_is_fetched(tidegate: Tidegate, tmp_path: Path) -> None:
    files = Files({"/crds.yaml": CONFIG.format(name="crds").encode()})
    async with listening(files.app()) as url:
        overlay = write_overlay(tmp_path / "overlay", f"{url}/crds.yaml")
        first = await tidegate.run("render", overlay, "-o", "names")

    offline = await tidegate.run("render", overlay, "-o", "names", "--offline")

    assert first.lines == ["v1 ConfigMap crds", "v1 ConfigMap own"]
    assert offline.lines == first.lines


async def test_a_repository_of_this_machine_is_nothing_a_manifest_may_name(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    secret = await Repository.create(tmp_path / "secret")
    await secret.commit(kustomization_yaml=KUSTOMIZATION, config_yaml=CONFIG.format(name="secret"))
    overlay = write_overlay(tmp_path / "overlay", f"{secret.url}?ref=main")

    ran = await tidegate.run("render", overlay)

    assert (ran.code, ran.stdout) == (3, "")
    assert "error[source.url.scheme]" in ran.stderr


async def test_the_address_of_its_own_repository_is_the_working_tree(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    shop = await Repository.create(tmp_path / "shop")
    await shop.git("remote", "add", "origin", "git@git.example.com:acme/shop.git")
    await shop.commit(base__kustomization_yaml=KUSTOMIZATION, base__config_yaml="")
    (shop.path / "base" / "config.yaml").write_text(CONFIG.format(name="not-pushed"))
    overlay = write_overlay(
        shop.path / "overlay", "https://git.example.com/acme/shop//base?ref=main"
    )

    ran = await tidegate.run("render", overlay, "-o", "names")

    assert ran.lines == ["v1 ConfigMap not-pushed", "v1 ConfigMap own"]


async def test_a_directory_can_replace_a_repository(tidegate: Tidegate, tmp_path: Path) -> None:
    here = tmp_path / "here" / "web"
    here.mkdir(parents=True)
    (here / "kustomization.yaml").write_text(KUSTOMIZATION)
    (here / "config.yaml").write_text(CONFIG.format(name="here"))
    overlay = write_overlay(tmp_path / "overlay", "https://git.example.com/acme/base//web?ref=v9")
    mapped = f"https://git.example.com/acme/base={tmp_path / 'here'}"

    ran = await tidegate.run("render", overlay, "-o", "names", "--offline", "--repo-map", mapped)

    assert (ran.code, ran.lines) == (0, ["v1 ConfigMap here", "v1 ConfigMap own"])


async def test_a_directory_can_replace_a_chart_repository(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    write_chart(tmp_path / "here" / "queue")
    chart = write_chart(tmp_path / "web", chart=needs("queue", "https://charts.example.com", "0.x"))
    mapped = f"https://charts.example.com={tmp_path / 'here'}"

    ran = await tidegate.run("render", chart, "-o", "names", "--offline", "--repo-map", mapped)

    assert (ran.code, len(ran.lines)) == (0, 2)


async def test_a_chart_of_an_overlay_is_fetched_from_its_repository(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    files = Files()
    files.add_chart("queue")
    async with listening(files.app()) as url:
        overlay = write_overlay(tmp_path / "overlay")
        with (overlay / "kustomization.yaml").open("a") as kustomization:
            entry = f"{{name: queue, repo: '{url}', version: 1.2.0, releaseName: jobs}}"
            kustomization.write(f"helmCharts:\n- {entry}\n")
        first = await tidegate.run("render", overlay, "-o", "names")

    second = await tidegate.run("render", overlay, "-o", "names", "--offline")

    assert first.stderr == ""
    assert sorted(first.lines) == ["v1 ConfigMap own", "v1 ConfigMap queue"]
    assert second.lines == first.lines


async def test_a_git_repository_is_rendered_by_its_address(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    shop = await Repository.create(tmp_path / "served" / "acme" / "shop.git")
    await shop.commit(apps__web_yaml=CONFIG.format(name="old"))
    await shop.git("tag", "v1.0.0")
    await shop.commit(apps__web_yaml=CONFIG.format(name="new"))
    async with listening(GitServer(tmp_path / "served").app()) as url:
        address = f"{url}/acme/shop.git//apps"
        newest = await tidegate.run("render", address, "-o", "names")
        tagged = await tidegate.run("render", address, "-o", "names", "--revision", "v1.0.0")

    assert newest.lines == ["v1 ConfigMap new"]
    assert tagged.lines == ["v1 ConfigMap old"]


async def test_a_chart_is_rendered_from_a_repository_and_from_a_registry(
    tidegate: Tidegate,
) -> None:
    files, registry = Files(), FakeRegistry()
    files.add_chart("web")
    registry.push("1.2.0", packed("web"), CHART_LAYER)
    async with listening(files.app()) as url, listening(registry.app()) as other:
        by_name = await tidegate.run("render", url, "--chart", "web", "--revision", "^1")
        address = f"oci://{other.partition('://')[2]}/charts/web"
        by_tag = await tidegate.run("render", address, "--revision", "1.2.0")

    assert (by_name.code, by_tag.code) == (0, 0)
    assert "name: web" in by_name.stdout
    assert by_tag.stdout == by_name.stdout


async def test_a_packed_chart_is_rendered_as_it_is(tidegate: Tidegate, tmp_path: Path) -> None:
    (tmp_path / "web-1.2.0.tgz").write_bytes(packed("web"))

    ran = await tidegate.run("render", tmp_path / "web-1.2.0.tgz", "--name", "shop", "-o", "names")

    assert ran.lines == ["v1 ConfigMap web"]
