"""`tidegate config`: the values of `tidegate.yaml`, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_command import CommandResult, Tidegate
from tidegate.documents import read_documents

WHOLE = """\
clusters:
  prod: {context: prod-eu, server: "https://prod.example.com/"}
  test: {}
repositories: {"https://github.com/acme/base": vendor/base}
charts:
- {repository: "oci://ghcr.io/acme", chart: redis, path: vendor/redis, version: 17.0.1}
roots: [./clusters/prod/, Application/argocd/root]
ignore: ["*.draft.yaml"]
settings: {progressive.syncs: true, timeout: "180s"}
health: [{apiVersion: apps/v1, current: status.ready == true}]
"""


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a chart and a directory in it."""
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "apps" / "web").mkdir(parents=True)
    (root / "vendor" / "base").mkdir(parents=True)
    (root / "vendor" / "redis").mkdir()
    chart = "apiVersion: v2\nname: redis\nversion: 17.0.1\n"
    (root / "vendor" / "redis" / "Chart.yaml").write_text(chart)
    return root


async def config_errors(tidegate: Tidegate, repo: Path, text: str) -> list[dict[str, str]]:
    """The errors of a file; every one has a hint."""
    (repo / "tidegate.yaml").write_text(text)
    ran = await tidegate.run("config", "-o", "json", cwd=repo)
    assert (ran.code, ran.stdout) == (3, "")
    errors = [json.loads(line) for line in ran.stderr.splitlines()]
    assert all(error["fix"] for error in errors)
    assert {error["severity"] for error in errors} == {"error"}
    return errors


async def test_without_a_file_all_values_are_defaults(
    wording: RecordedWording, tidegate: Tidegate, repo: Path
) -> None:
    ran = await tidegate.run("config", cwd=repo)

    assert (ran.code, ran.stderr) == (0, "")
    wording(ran.lines[:3])
    (document,) = read_documents(ran.stdout, "")
    mappings = ("clusters", "repositories", "settings", "lint")
    lists = ("charts", "roots", "ignore", "health")
    assert document.body == {key: {} for key in mappings} | {key: [] for key in lists}


async def test_an_empty_file_sets_nothing(tidegate: Tidegate, repo: Path) -> None:
    (repo / "tidegate.yaml").write_text("# later\n")

    ran = await tidegate.run("config", cwd=repo)

    assert ran.lines[:2] == ["# tidegate.yaml", "clusters: {}      # default"]


async def test_the_output_is_a_valid_file_and_names_each_line(
    tidegate: Tidegate, repo: Path
) -> None:
    (repo / "tidegate.yaml").write_text(WHOLE)
    first = await tidegate.run("config", cwd=repo)
    assert first.code == 0, first.stderr
    assert "\x1b" not in first.stdout
    noted = [line.rpartition("  # ") for line in first.lines[1:] if "  # " in line]
    assert [note for *_, note in noted] == [
        *("line 2", "line 3", "line 4", "line 6", "line 7", "line 7", "line 8", "line 9", "line 9"),
        "line 10",
        "default",
    ]
    assert len({line.index("  # line ") for line in first.lines if "  # line " in line}) == 1

    (repo / "tidegate.yaml").write_text(first.stdout)
    again = await tidegate.run("config", cwd=repo)

    assert without_notes(again) == without_notes(first)


def without_notes(ran: CommandResult) -> list[str]:
    return [line.partition("  # ")[0].rstrip() for line in ran.lines]


async def test_programs_can_read_it(tidegate: Tidegate, repo: Path) -> None:
    (repo / "tidegate.yaml").write_text(WHOLE)

    ran = await tidegate.run("config", "-o", "json", cwd=repo)

    document = json.loads(ran.stdout)
    assert (document["file"], document["folder"]) == ("tidegate.yaml", str(repo))
    clusters = [
        (cluster["name"], cluster["context"], cluster["server"]) for cluster in document["clusters"]
    ]
    assert clusters == [("prod", "prod-eu", "https://prod.example.com"), ("test", "test", "")]
    assert [entry["text"] for entry in document["roots"]] == [
        "clusters/prod",
        "Application/argocd/root",
    ]
    assert [setting["value"] for setting in document["settings"]] == [True, "180s"]
    assert document["charts"][0]["location"]["line"] == 6


async def test_the_closest_file_in_the_repository_is_used(tidegate: Tidegate, repo: Path) -> None:
    (repo.parent / "tidegate.yaml").write_text("settings: {far: true}\n")
    alone = await tidegate.run("config", "apps/web", cwd=repo)
    (repo / "tidegate.yaml").write_text("settings: {near: true}\n")
    above = await tidegate.run("config", "apps/web", cwd=repo)
    (repo / "apps" / "tidegate.yaml").write_text("settings: {nearest: true}\n")
    nearest = await tidegate.run("config", "web", cwd=repo / "apps")

    assert alone.lines[0] != "# tidegate.yaml"
    assert "far: true" not in alone.stdout
    assert (above.lines[0], "near: true" in above.stdout) == ("# tidegate.yaml", True)
    assert (nearest.lines[0], "nearest: true" in nearest.stdout) == ("# tidegate.yaml", True)


async def test_outside_git_only_the_directory_itself_is_searched(
    tidegate: Tidegate, repo: Path
) -> None:
    (repo / ".git").rmdir()
    (repo / "tidegate.yaml").write_text("settings: {a: b}\n")

    below = await tidegate.run("config", "apps", cwd=repo)
    here = await tidegate.run("config", cwd=repo)

    assert below.lines[0] != "# tidegate.yaml"
    assert "a: b" not in below.stdout
    assert here.lines[0] == "# tidegate.yaml"


async def test_every_mistake_is_reported_at_once(
    wording: RecordedWording, tidegate: Tidegate, repo: Path
) -> None:
    errors = await config_errors(
        tidegate,
        repo,
        "cluster: {}\nclusters: {prod: {ctx: a}}\nroots: apps\n"
        "charts: [{chart: redis, version: 17.5}]\nsettings: {a: 180}\n",
    )

    assert [
        (error["location"].removeprefix("tidegate.yaml:"), error["code"]) for error in errors
    ] == [
        ("1:1 (cluster)", "file.key"),
        ("2:19 (clusters.prod.ctx)", "file.key"),
        ("3:1 (roots)", "file.type"),
        ("4:10 (charts[0])", "file.missing"),
        ("4:10 (charts[0])", "file.missing"),
        ("4:25 (charts[0].version)", "file.type"),
        ("5:12 (settings.a)", "file.type"),
    ]
    wording(error["message"] for error in errors)


INVALID_VALUES = {
    "repository-above": "repositories: {'https://a/b': ../base}",
    "repository-absolute": "repositories: {'https://a/b': /base}",
    "repository-link": "repositories: {'https://a/b': link}",
    "repository-missing": "repositories: {'https://a/b': nowhere}",
    "repository-address": "repositories: {base: vendor/base}",
    "root-above": "roots: [../other]",
    "pattern": "ignore: ['[a']",
    "pattern-empty": "ignore: ['']",
    "server": "clusters: {a: {server: prod}}",
    "server-twice": "clusters: {a: {server: 'https://a'}, b: {server: 'https://a/'}}",
    "chart": "charts: [{path: vendor/base}]",
    "chart-above": "charts: [{path: ../redis}]",
    "version": "charts: [{path: vendor/redis, version: soon}]",
    "version-other": "charts: [{path: vendor/redis, version: 17.0.2}]",
}


@pytest.mark.parametrize("text", INVALID_VALUES.values(), ids=INVALID_VALUES)
async def test_an_invalid_value_is_reported(
    wording: RecordedWording, tidegate: Tidegate, repo: Path, text: str
) -> None:
    (repo / "link").symlink_to("/")

    (error,) = await config_errors(
        tidegate, repo, text.replace("{path", "{repository: 'https://a', chart: redis, path")
    )

    assert error["code"] == "file.value"
    assert error["location"].startswith("tidegate.yaml:1:")
    wording(error["message"])


async def test_a_password_is_refused_and_not_shown(
    wording: RecordedWording, tidegate: Tidegate, repo: Path
) -> None:
    address = "'https://ann:s3cret@a/b'"
    text = f"repositories: {{{address}: nowhere}}\nclusters: {{a: {{server: {address}}}}}\n"

    errors = await config_errors(tidegate, repo, text)
    ran = await tidegate.run("config", cwd=repo)

    assert len(errors) == 2
    wording(error["message"] for error in errors)
    assert ran.code == 3
    assert "s3cret" not in ran.stdout + ran.stderr + str(errors)


async def test_paths_are_relative_to_the_file(tidegate: Tidegate, repo: Path) -> None:
    text = "repositories: {'https://a/b': ../vendor/base}\nroots: [../vendor]\n"
    (repo / "apps" / "tidegate.yaml").write_text(text)

    ran = await tidegate.run("config", "apps/web", cwd=repo)

    assert ran.code == 0, ran.stderr


@pytest.mark.parametrize("text", ["clusters: {prod: [\n", "a: b\n---\nc: d\n", "- a list\n", "\t"])
async def test_an_invalid_file_is_reported_with_its_line(
    tidegate: Tidegate, repo: Path, text: str
) -> None:
    (repo / "tidegate.yaml").write_text(text)

    ran = await tidegate.run("config", cwd=repo)

    assert (ran.code, ran.stdout) == (3, "")
    assert "  at tidegate.yaml:" in ran.stderr
    assert "Traceback" not in ran.stderr


async def test_a_file_that_cannot_be_read_is_reported(
    wording: RecordedWording, tidegate: Tidegate, repo: Path
) -> None:
    outside = repo.parent / "outside.yaml"
    outside.write_text("settings: {a: b}\n")
    (repo / "tidegate.yaml").symlink_to(outside)
    (repo / "apps" / "tidegate.yaml").mkdir()
    (repo / "vendor" / "tidegate.yml").touch()

    out = await tidegate.run("config", cwd=repo)
    directory = await tidegate.run("config", "apps", cwd=repo)
    misspelt = await tidegate.run("config", "vendor", cwd=repo)

    assert (out.code, directory.code, misspelt.code) == (3, 3, 3)
    wording(out.stderr)
    wording(directory.stderr)
    wording(misspelt.stderr)


async def test_a_missing_path_is_a_usage_error(tidegate: Tidegate) -> None:
    ran = await tidegate.run("config", "nowhere")

    assert (ran.code, ran.stdout) == (2, "")
    assert "nowhere" in ran.stderr


async def test_the_file_itself_is_no_manifest(tidegate: Tidegate, repo: Path) -> None:
    (repo / "tidegate.yaml").write_text(WHOLE)
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
    (repo / "web.yaml").write_text(text)

    ran = await tidegate.run("render", ".", "-o", "names", cwd=repo)

    assert (ran.code, ran.lines) == (0, ["v1 ConfigMap web"]), ran.stderr


def test_the_page_of_the_file_shows_the_example() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "reference" / "tidegate-yaml.md").read_text()
    shown = page.partition("```yaml\n")[2].partition("```")[0]

    (document,) = read_documents(shown, "")
    (example,) = read_documents(
        (root / "examples" / "configured" / "tidegate.yaml").read_bytes(), ""
    )

    assert document.body == example.body
