"""Which files of a repository may be read: regular files inside it, and not too large."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.errors import RenderError
from tidegate.render.helm.worker import files
from tidegate.render.helm.worker.files import check_chart, find_file, read_text


def refused(root: Path, path: str) -> RenderError:
    with pytest.raises(RenderError) as caught:
        read_text(find_file(path, root=str(root), start=root), display_path=path)
    return caught.value


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("hunter2")
    source = tmp_path / "source"
    source.mkdir()
    return source


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "/../secret", "./../source/../x"])
def test_a_path_with_dots_does_not_leave_the_source(root: Path, path: str) -> None:
    assert refused(root, path).code == "render.helm.outside"


def test_an_absolute_path_starts_at_the_root_of_the_source(root: Path) -> None:
    (root / "etc").mkdir()
    (root / "etc" / "hostname").write_text("ours")

    path = find_file("/etc/hostname", root=str(root), start=root)

    assert read_text(path, display_path="/etc/hostname") == "ours"


def test_a_link_out_of_the_source_is_refused(root: Path) -> None:
    (root / "values.yaml").symlink_to("../secret")

    assert refused(root, "values.yaml").code == "render.helm.outside"


def test_a_link_inside_the_source_is_followed(root: Path) -> None:
    (root / "real.yaml").write_text("a: 1")
    (root / "values.yaml").symlink_to("real.yaml")

    path = find_file("values.yaml", root=str(root), start=root)

    assert read_text(path, display_path="values.yaml") == "a: 1"


def test_link_cycles_are_rejected(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")

    assert refused(root, "a").code == "render.helm.file"


def test_a_pipe_and_a_directory_are_not_read(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()

    codes = {refused(root, "pipe").code, refused(root, "folder").code}

    assert codes == {"render.helm.irregular"}


def test_a_device_is_not_read() -> None:
    with pytest.raises(RenderError) as caught:
        read_text(Path("/dev/zero"), display_path="zero")

    assert caught.value.code == "render.helm.irregular"


def test_a_file_that_is_too_large_is_refused(root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(files.MAX_FILE_SIZE + 1)

    assert refused(root, "large").code == "render.helm.size"


def test_a_file_that_is_not_text_is_refused(root: Path) -> None:
    (root / "binary").write_bytes(b"\xff\xfe\x00")

    assert refused(root, "binary").code == "render.helm.file"


def chart_with_link(root: Path, name: str, target: str) -> Path:
    chart = root / "web"
    (chart / "templates").mkdir(parents=True)
    (chart / "templates" / name).symlink_to(target)
    return chart


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("../../../secret", "render.helm.outside"),
        ("/etc/passwd", "render.helm.outside"),
        ("/dev/zero", "render.helm.outside"),
        ("nowhere", "render.helm.file"),
        ("../..", "render.helm.outside"),
        ("..", "render.helm.file"),
    ],
)
def test_a_chart_with_a_bad_link_is_refused(root: Path, target: str, code: str) -> None:
    chart = chart_with_link(root, "link", target)
    source = chart if target == "../.." else root

    with pytest.raises(RenderError) as caught:
        check_chart(chart, str(source))

    assert caught.value.code == code
    assert caught.value.location is not None
    assert caught.value.location.name == "templates/link"


def test_a_chart_with_a_good_link_is_accepted(root: Path) -> None:
    (root / "shared.tpl").write_text("")
    chart = chart_with_link(root, "shared.tpl", "../../shared.tpl")

    check_chart(chart, str(root))


def test_a_chart_with_a_pipe_is_refused(root: Path) -> None:
    os.mkfifo(root / "pipe")

    with pytest.raises(RenderError) as caught:
        check_chart(root, str(root))

    assert caught.value.code == "render.helm.irregular"
