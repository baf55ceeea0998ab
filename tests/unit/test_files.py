"""Untrusted paths stay inside of the tree."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegate.files import (
    IrregularFileError,
    PathEscapeError,
    PathViolation,
    RootedFiles,
    archive_entry_path,
    normalize_path,
    open_file,
    resolve_within,
)

LONG = "x" * 300


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree `source` with a file and a directory, and a secret beside it."""
    (tmp_path / "secret").write_text("hunter2")
    (tmp_path / "source-of-another").mkdir()
    source = tmp_path / "source"
    (source / "dir").mkdir(parents=True)
    (source / "file").write_text("ours")
    return source


def why_not(root: Path, path: str) -> PathViolation:
    with pytest.raises(PathEscapeError) as caught:
        resolve_within(root / path, root)
    return caught.value.violation


@pytest.mark.parametrize(
    ("path", "tidied"),
    [
        (".", "."),
        ("./", "."),
        ("a/..", "."),
        ("a//b/", "a/b"),
        ("a/./b", "a/b"),
        ("a/../b", "b"),
        ("...", "..."),
        ("..a/b", "..a/b"),
        ("a\\..\\..\\b", "a\\..\\..\\b"),
        ("A", "A"),
        ("\udcff", "\udcff"),
        (LONG, LONG),
    ],
)
def test_a_path_is_tidied_as_text(path: str, tidied: str) -> None:
    assert normalize_path(path) == tidied


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", PathViolation.INVALID),
        ("a\0b", PathViolation.INVALID),
        ("/", PathViolation.ABSOLUTE),
        ("//etc", PathViolation.ABSOLUTE),
        ("/a/../b", PathViolation.ABSOLUTE),
        ("..", PathViolation.OUTSIDE),
        ("../", PathViolation.OUTSIDE),
        ("../a", PathViolation.OUTSIDE),
        ("a/../../b", PathViolation.OUTSIDE),
        ("./.././a", PathViolation.OUTSIDE),
        ("a/../../a", PathViolation.OUTSIDE),
    ],
)
def test_a_text_that_is_no_path_inside_is_refused(path: str, why: PathViolation) -> None:
    with pytest.raises(PathEscapeError) as caught:
        normalize_path(path)

    assert caught.value.violation is why


def test_a_path_can_go_up_to_the_root() -> None:
    assert normalize_path("../../c", "a/b") == "c"
    with pytest.raises(PathEscapeError):
        normalize_path("../../../c", "a/b")


@pytest.mark.parametrize("entry", ["a/b", "./a/b", "a//b/", "a/./b"])
def test_an_entry_of_an_archive_is_below_its_directory(entry: str) -> None:
    assert archive_entry_path(entry).parts == ("a", "b")


@pytest.mark.parametrize(
    "entry",
    ["", "..", "../a", "a/..", "a/../b", "a/../../b", "/a", "//a", "a\\b", "..\\a", "a\0b"],
)
def test_an_entry_of_an_archive_never_leaves_its_directory(entry: str) -> None:
    with pytest.raises(PathEscapeError):
        archive_entry_path(entry)


@pytest.mark.parametrize(
    ("path", "real"),
    [
        (".", "."),
        ("file", "file"),
        ("dir/", "dir"),
        ("dir/../file", "file"),
        ("dir/../../source/file", "file"),
        ("nowhere/at/all", "nowhere/at/all"),
        ("file/below", "file/below"),
        ("dir\\..\\..\\secret", "dir\\..\\..\\secret"),
    ],
)
def test_a_path_is_followed_to_where_it_leads(root: Path, path: str, real: str) -> None:
    assert resolve_within(root / path, root) == root.resolve() / real


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("..", PathViolation.OUTSIDE),
        ("../secret", PathViolation.OUTSIDE),
        ("dir/../../secret", PathViolation.OUTSIDE),
        ("nowhere/../../secret", PathViolation.OUTSIDE),
        ("file/../../secret", PathViolation.OUTSIDE),
        ("../source-of-another", PathViolation.OUTSIDE),
        ("/etc/passwd", PathViolation.OUTSIDE),
        ("a\0b", PathViolation.INVALID),
        ("\ud800", PathViolation.INVALID),
        (LONG, PathViolation.INVALID),
        ("dir/" * 2000, PathViolation.INVALID),
    ],
)
def test_a_path_that_leads_out_or_nowhere_is_refused(
    root: Path, path: str, why: PathViolation
) -> None:
    assert why_not(root, path) is why


def test_a_name_that_is_not_utf_8_is_a_name(root: Path) -> None:
    name = os.fsdecode(b"\xe9t\xe9")
    (root / name).write_text("ours")

    with open_file(resolve_within(root / name, root)) as file:
        assert file.read() == b"ours"


def test_links_that_stay_inside_are_followed(root: Path) -> None:
    (root / "one").symlink_to("dir/two")
    (root / "dir" / "two").symlink_to("../three")
    (root / "three").symlink_to("file")
    (root / "up").symlink_to("dir/../../source/dir")

    assert resolve_within(root / "one", root) == root.resolve() / "file"
    assert resolve_within(root / "up" / "two", root) == root.resolve() / "file"


@pytest.mark.parametrize("target", ["../secret", "dir/../../secret", "/etc/passwd", ".."])
def test_a_link_out_is_refused_however_it_is_reached(root: Path, target: str) -> None:
    (root / "out").symlink_to(target)
    (root / "chain").symlink_to("dir/next")
    (root / "dir" / "next").symlink_to("../out")
    (root / "here").symlink_to(".")

    for path in ("out", "chain", "here/out", "here/here/dir/next", "out/../out"):
        assert why_not(root, path) is PathViolation.OUTSIDE


def test_a_file_under_a_link_out_is_refused_too(root: Path) -> None:
    (root / "up").symlink_to("..")

    assert why_not(root, "up/secret") is PathViolation.OUTSIDE
    assert why_not(root, "up/nowhere") is PathViolation.OUTSIDE
    assert resolve_within(root / "up/source/file", root) == root.resolve() / "file"


def test_link_cycles_are_rejected(root: Path) -> None:
    (root / "self").symlink_to("self")
    (root / "a").symlink_to("dir/b")
    (root / "dir" / "b").symlink_to("../a")

    for path in ("self", "a", "dir/b", "a/below", "self/../file"):
        assert why_not(root, path) is PathViolation.LINK_LOOP


def test_a_link_cycle_hides_no_link_to_the_outside(root: Path) -> None:
    (root / "self").symlink_to("self")
    (root / "out").symlink_to("../secret")
    (root / "sly").symlink_to("self/../out")

    assert why_not(root, "sly") is PathViolation.LINK_LOOP


def test_a_link_to_a_name_that_is_too_long_is_refused(root: Path) -> None:
    (root / "link").symlink_to(LONG)

    assert why_not(root, "link") is PathViolation.INVALID


def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(root)

    assert (
        resolve_within(tmp_path / "other" / "file", tmp_path / "other") == root.resolve() / "file"
    )


def test_only_regular_files_are_opened_without_blocking(root: Path) -> None:
    os.mkfifo(root / "pipe")

    for name in ("pipe", "dir"):
        with pytest.raises(IrregularFileError):
            open_file(root / name)
    with pytest.raises(FileNotFoundError):
        open_file(root / "nowhere")


def test_a_link_created_after_the_check_is_not_opened(root: Path) -> None:
    result = resolve_within(root / "file", root)
    result.unlink()
    result.symlink_to("../secret")

    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        open_file(result)


def test_many_files_of_a_tree_are_read_and_none_outside(root: Path) -> None:
    (root / "dir" / "deep").write_text("ours, too")
    (root / "to-dir").symlink_to("dir")
    (root / "to-file").symlink_to("file")
    (root / "dir" / "out").symlink_to("../../secret")
    (root / "out").symlink_to("..")
    within = RootedFiles(root)

    for path in ("file", "dir/deep", "to-dir/deep", "to-file"):
        assert within.read(path, 100).startswith(b"ours")
    for path in ("dir/out", "to-dir/out", "out/secret", "out/source/file"):
        with pytest.raises(PathEscapeError):
            within.read(path, 100)


def test_a_file_that_was_read_whole_is_not_read_again(root: Path) -> None:
    (root / "file").write_text("first")
    within = RootedFiles(root, kept_size=100)
    start, whole = within.read("file", 2), within.read("file", 100)

    (root / "file").write_text("second")

    assert (start, whole) == (b"fi", b"first")
    assert within.read("file", 100) == b"first"
    assert within.read("file", 2) == b"fi"
    assert RootedFiles(root).read("file", 100) == b"second"


def test_only_contents_up_to_the_size_are_kept(root: Path) -> None:
    (root / "small").write_text("1234")
    (root / "large").write_text("123456")
    within = RootedFiles(root, kept_size=6)
    for name in ("small", "large"):
        within.read(name, 100)

    assert (within.kept("small"), within.kept("large")) == (b"1234", None)


def test_a_pipe_is_not_read(root: Path) -> None:
    os.mkfifo(root / "pipe")

    with pytest.raises(IrregularFileError):
        RootedFiles(root).read("pipe", 100)


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "dir", "./dir/", "dir//deep", "dir/./deep", "nowhere", "file", "x\0y"),
        *("to-dir", "to-dir/deep", "to-deep", "to-deep/..", "to-deep/../..", "to-nothing"),
        *("out", "out/source-of-another", "..", "dir/../..", "../source/dir", "circle", "/"),
    ],
)
def test_a_directory_is_where_the_path_to_it_leads(root: Path, path: str) -> None:
    (root / "dir" / "deep").mkdir()
    links = {
        "to-dir": "dir",
        "to-deep": "dir/deep",
        "to-nothing": "gone",
        "out": "..",
        "circle": "circle",
    }
    for link, aim in links.items():
        (root / link).symlink_to(aim)

    assert _end(RootedFiles(root).resolve_directory, path) == _end(
        lambda item: resolve_within(root / item, root), path
    )


def _end(find: Callable[[str], Path | str], path: str) -> str | PathViolation:
    try:
        return str(find(path))
    except PathEscapeError as stray:
        return stray.violation
