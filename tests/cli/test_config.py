"""`tidegate config`, from outside: what a repository's file says, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.tidegate_command import Ran, Tidegate
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


async def refused(tidegate: Tidegate, repo: Path, text: str) -> list[str]:
    """Each error's code, place and problem; every one has a hint."""
    (repo / "tidegate.yaml").write_text(text)
    ran = await tidegate.run("config", cwd=repo)
    assert (ran.code, ran.stdout) == (3, "")
    lines = ran.stderr.splitlines()
    heads, places, hints = lines[::3], lines[1::3], lines[2::3]
    assert all(hint.startswith("  hint: ") for hint in hints)
    return [
        f"{place.removeprefix('  at ')} {head}" for head, place in zip(heads, places, strict=True)
    ]


async def test_without_a_file_all_is_as_by_default(tidegate: Tidegate, repo: Path) -> None:
    ran = await tidegate.run("config", cwd=repo)

    assert (ran.code, ran.stderr) == (0, "")
    assert ran.lines[0] == "# there is no tidegate.yaml"
    assert ran.lines[1:3] == ["clusters: {}      # default", "repositories: {}  # default"]
    (document,) = read_documents(ran.stdout, "")
    mappings = ("clusters", "repositories", "settings", "lint")
    lists = ("charts", "entries", "ignore", "health")
    assert document.body == {key: {} for key in mappings} | {key: [] for key in lists}


async def test_an_empty_file_says_nothing(tidegate: Tidegate, repo: Path) -> None:
    (repo / "tidegate.yaml").write_text("# later\n")

    ran = await tidegate.run("config", cwd=repo)

    assert ran.lines[:2] == ["# tidegate.yaml", "clusters: {}      # default"]


async def test_the_text_says_the_same_again_and_names_each_line(
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


def without_notes(ran: Ran) -> list[str]:
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
    assert [entry["text"] for entry in document["entries"]] == [
        "clusters/prod",
        "Application/argocd/root",
    ]
    assert [setting["value"] for setting in document["settings"]] == [True, "180s"]
    assert document["charts"][0]["location"]["line"] == 6


async def test_the_nearest_file_counts_and_none_above_the_repository(
    tidegate: Tidegate, repo: Path
) -> None:
    (repo.parent / "tidegate.yaml").write_text("settings: {far: true}\n")
    alone = await tidegate.run("config", "apps/web", cwd=repo)
    (repo / "tidegate.yaml").write_text("settings: {near: true}\n")
    above = await tidegate.run("config", "apps/web", cwd=repo)
    (repo / "apps" / "tidegate.yaml").write_text("settings: {nearest: true}\n")
    nearest = await tidegate.run("config", "web", cwd=repo / "apps")

    assert alone.lines[0] == "# there is no tidegate.yaml"
    assert (above.lines[0], "near: true" in above.stdout) == ("# tidegate.yaml", True)
    assert (nearest.lines[0], "nearest: true" in nearest.stdout) == ("# tidegate.yaml", True)


async def test_outside_git_only_the_very_directory_is_looked_at(
    tidegate: Tidegate, repo: Path
) -> None:
    (repo / ".git").rmdir()
    (repo / "tidegate.yaml").write_text("settings: {a: b}\n")

    below = await tidegate.run("config", "apps", cwd=repo)
    here = await tidegate.run("config", cwd=repo)

    assert below.lines[0] == "# there is no tidegate.yaml"
    assert here.lines[0] == "# tidegate.yaml"


async def test_every_mistake_is_told_at_once(tidegate: Tidegate, repo: Path) -> None:
    result = await refused(
        tidegate,
        repo,
        "cluster: {}\nclusters: {prod: {ctx: a}}\nentries: apps\n"
        "charts: [{chart: redis, version: 17.5}]\nsettings: {a: 180}\n",
    )

    assert [item.removeprefix("tidegate.yaml:").replace("error", "") for item in result] == [
        "1:1 (cluster) [file.key]: a configuration has no key `cluster`",
        "2:19 (clusters.prod.ctx) [file.key]: `prod` has no key `ctx`",
        "3:1 (entries) [file.type]: `entries` must be a list, not text",
        "4:10 (charts[0]) [file.missing]: an entry of `charts` needs `repository`",
        "4:10 (charts[0]) [file.missing]: an entry of `charts` needs `path`",
        "4:25 (charts[0].version) [file.type]: `version` must be text, not a number",
        "5:12 (settings.a) [file.type]: `a` must be text or `true` or `false`, not a whole number",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("repositories: {'https://a/b': ../base}", "`../base` leads out of the repository"),
        ("repositories: {'https://a/b': /base}", "`/base` is an absolute path"),
        ("repositories: {'https://a/b': link}", "`link` leads out of the repository"),
        ("repositories: {'https://a/b': nowhere}", "`nowhere` is not a directory"),
        ("repositories: {base: vendor/base}", "`base` is not an address"),
        ("roots: [../other]", "`../other` leads out of the repository"),
        ("ignore: ['[a']", "`[a` is no pattern"),
        ("ignore: ['']", "`` is no pattern"),
        ("clusters: {a: {server: prod}}", "`prod` is not the address of a server"),
        (
            "clusters: {a: {server: 'https://a'}, b: {server: 'https://a/'}}",
            "`https://a` is the server of `a` already",
        ),
        ("charts: [{path: vendor/base}]", "`vendor/base` is not a chart"),
        ("charts: [{path: ../redis}]", "`../redis` leads out of the repository"),
        ("charts: [{path: vendor/redis, version: soon}]", "`soon` is not a version"),
        (
            "charts: [{path: vendor/redis, version: 17.0.2}]",
            "the chart at `vendor/redis` has version `17.0.1`",
        ),
    ],
)
async def test_what_cannot_be_is_told(
    tidegate: Tidegate, repo: Path, text: str, problem: str
) -> None:
    (repo / "link").symlink_to("/")

    (result,) = await refused(
        tidegate, repo, text.replace("{path", "{repository: 'https://a', chart: redis, path")
    )

    assert result.endswith(f"error[file.value]: {problem}")
    assert result.startswith("tidegate.yaml:1:")


async def test_a_password_is_refused_and_not_shown(tidegate: Tidegate, repo: Path) -> None:
    address = "'https://ann:s3cret@a/b'"
    text = f"repositories: {{{address}: nowhere}}\nclusters: {{a: {{server: {address}}}}}\n"
    (repo / "tidegate.yaml").write_text(text)

    ran = await tidegate.run("config", cwd=repo)

    assert (ran.code, ran.stderr.count("a password in it")) == (3, 2)
    assert "`https://a/b` is written with a password in it" in ran.stderr
    assert "s3cret" not in ran.stdout + ran.stderr


async def test_paths_are_seen_from_the_file(tidegate: Tidegate, repo: Path) -> None:
    text = "repositories: {'https://a/b': ../vendor/base}\nentries: [../vendor]\n"
    (repo / "apps" / "tidegate.yaml").write_text(text)

    ran = await tidegate.run("config", "apps/web", cwd=repo)

    assert ran.code == 0, ran.stderr


@pytest.mark.parametrize("text", ["clusters: {prod: [\n", "a: b\n---\nc: d\n", "- a list\n", "\t"])
async def test_what_is_no_such_file_is_told_with_its_line(
    tidegate: Tidegate, repo: Path, text: str
) -> None:
    (repo / "tidegate.yaml").write_text(text)

    ran = await tidegate.run("config", cwd=repo)

    assert (ran.code, ran.stdout) == (3, "")
    assert "  at tidegate.yaml:" in ran.stderr
    assert "Traceback" not in ran.stderr


async def test_a_file_that_cannot_be_read_is_told(tidegate: Tidegate, repo: Path) -> None:
    outside = repo.parent / "outside.yaml"
    outside.write_text("settings: {a: b}\n")
    (repo / "tidegate.yaml").symlink_to(outside)
    (repo / "apps" / "tidegate.yaml").mkdir()
    (repo / "vendor" / "tidegate.yml").touch()

    out = await tidegate.run("config", cwd=repo)
    directory = await tidegate.run("config", "apps", cwd=repo)
    misspelt = await tidegate.run("config", "vendor", cwd=repo)

    assert (out.code, directory.code, misspelt.code) == (3, 3, 3)
    assert "this file cannot be read: it leads out" in out.stderr
    assert "this file cannot be read: it is not a regular file" in directory.stderr
    assert "  hint: call it `tidegate.yaml`" in misspelt.stderr


async def test_a_path_that_is_not_there_is_a_mistake_in_the_command(tidegate: Tidegate) -> None:
    ran = await tidegate.run("config", "nowhere")

    assert (ran.code, ran.stdout) == (2, "")
    assert "nowhere" in ran.stderr


async def test_the_file_itself_is_no_manifest(tidegate: Tidegate, repo: Path) -> None:
    (repo / "tidegate.yaml").write_text(WHOLE)
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
    (repo / "web.yaml").write_text(text)

    ran = await tidegate.run("render", ".", "-o", "names", cwd=repo)

    assert (ran.code, ran.lines) == (0, ["v1 ConfigMap web"]), ran.stderr


def test_the_page_of_the_file_shows_what_the_example_says() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "reference" / "tidegate-yaml.md").read_text()
    shown = page.partition("```yaml\n")[2].partition("```")[0]

    (document,) = read_documents(shown, "")
    (example,) = read_documents(
        (root / "examples" / "configured" / "tidegate.yaml").read_bytes(), ""
    )

    assert document.body == example.body
