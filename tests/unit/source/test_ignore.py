"""Rules that leave files out, against the library that Flux uses, and against git."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.git_server import AUTHOR, run_git
from tidegate.source.ignore import filter_files, is_ignored, read_rules

RECORDED = Path(__file__).parents[2] / "data" / "source" / "ignore-rules.json"


class Recorded(msgspec.Struct):
    library: str
    paths: list[str]
    ignored: list[tuple[list[str], list[int]]]


def ignored(lines: list[str], paths: list[str]) -> list[str]:
    rules = read_rules("\n".join(lines))
    return [p for p in paths if is_ignored(p.rstrip("/"), rules, is_directory=p.endswith("/"))]


def test_every_set_of_rules_leaves_out_what_the_library_leaves_out() -> None:
    recorded = msgspec.json.decode(RECORDED.read_bytes(), type=Recorded)

    matches = [ignored(lines, recorded.paths) for lines, _ in recorded.ignored]

    assert matches == [[recorded.paths[at] for at in expected] for _, expected in recorded.ignored]
    assert len(matches) > 200


@pytest.mark.parametrize(
    "lines",
    [
        ["*.md"],
        ["/*", "!/deploy"],
        ["docs/"],
        ["/app/*.yaml", "!/app/web.yaml"],
        ["**/test"],
        ["app/**/test"],
        ["web.?aml"],
        ["[a-d]*.yaml"],
        ["# a comment", "", r"\#odd"],
    ],
    ids=" ".join,
)
async def test_usual_rules_mean_what_they_mean_to_git(tmp_path: Path, lines: list[str]) -> None:
    paths = ["readme.md", "deploy/web.yaml", "docs/a.md", "docs/b.yaml", "app/web.yaml", "#odd"]
    paths += ["app/db.yaml", "app/test/x.yaml", "app/sub/test/y.yaml", "test", "cache.yaml"]
    await run_git("init", "--quiet", cwd=tmp_path, variables=AUTHOR)
    (tmp_path / ".gitignore").write_text("\n".join(lines))
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()

    request = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    listed = await run_git(*request, cwd=tmp_path, variables=AUTHOR)

    by_git = {path for path in listed.decode().split("\0") if path} - {".gitignore"}
    assert set(ignored(lines, paths)) == by_git
    assert by_git


def test_unlike_in_git_a_file_can_be_taken_back_from_a_directory_that_is_left_out() -> None:
    paths = ["vendor/x/keep.yaml", "vendor/x/other.yaml"]

    assert ignored(["vendor/", "!keep.yaml"], paths) == ["vendor/x/other.yaml"]


def test_defaults_count_only_where_there_are_no_rules(tmp_path: Path) -> None:
    files = (".gitignore", ".github/ci.yml", ".sops.yaml", "app.yaml", "logo.png")

    without = filter_files(tmp_path, files)
    with_one = filter_files(tmp_path, files, extra="/nothing\n")

    assert without == ("app.yaml",)
    assert with_one == (".github/ci.yml", ".sops.yaml", "app.yaml", "logo.png")


def test_a_rule_file_counts_below_its_own_directory(tmp_path: Path) -> None:
    files = ("a/.sourceignore", "a/x.yaml", "b/x.yaml")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/.sourceignore").write_text("/x.yaml\n")

    assert filter_files(tmp_path, files) == ("a/.sourceignore", "b/x.yaml")


def test_ignore_rules_of_the_source_take_precedence(tmp_path: Path) -> None:
    files = (".sourceignore", "a.yaml", "b.yaml")
    (tmp_path / ".sourceignore").write_text("*.yaml\n")

    assert filter_files(tmp_path, files, extra="!b.yaml\n") == (".sourceignore", "b.yaml")


def test_a_rule_of_many_stars_is_judged_at_once() -> None:
    rules = read_rules("*a" * 40 + "b")

    assert not is_ignored("a" * 5000, rules)
