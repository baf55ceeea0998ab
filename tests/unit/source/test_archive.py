"""Archives that strangers make."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.chart_archives import TarMaker, a_chart, a_zip
from tidegate.errors import SourceError
from tidegate.source.archive import unpack
from tidegate.source.tree import MIB, TreeLimits, walk_tree


def unpacked(
    place: Path, content: bytes, *, strip: int = 0, limits: TreeLimits | None = None
) -> Path:
    packed, target = place / "packed", place / "out" / "tree"
    packed.write_bytes(content)
    target.mkdir(parents=True)
    unpack(packed, target, name="chart.tgz", limits=limits, strip=strip)
    return target


def paths_in(tree: Path) -> list[str]:
    return [entry.path for entry in walk_tree(tree)]


def refusal(place: Path, content: bytes, limits: TreeLimits | None = None) -> SourceError:
    with pytest.raises(SourceError) as caught:
        unpacked(place, content, limits=limits)
    outside = [path for path in place.rglob("*") if path.name in ("evil", "passwd")]
    assert [path for path in outside if "tree" not in path.parts] == []
    return caught.value


def test_a_chart_is_unpacked_without_its_outer_directory(tmp_path: Path) -> None:
    tree = unpacked(tmp_path, a_chart(), strip=1)

    assert paths_in(tree) == ["Chart.yaml", "templates/service.yaml"]


def test_a_plain_tar_is_unpacked_too(tmp_path: Path) -> None:
    tar = unpacked(tmp_path, TarMaker().add("./a/b.yaml", b"x").tar())

    assert paths_in(tar) == ["a/b.yaml"]


def test_a_zip_is_unpacked(tmp_path: Path) -> None:
    tree = unpacked(tmp_path, a_zip({"a/": b"", "a/b.yaml": b"x", "c.yaml": b"y"}))

    assert paths_in(tree) == ["a/b.yaml", "c.yaml"]


def test_links_inside_are_kept_and_hard_links_become_copies(tmp_path: Path) -> None:
    maker = TarMaker().add("a/real", b"text").link("a/soft", "real").link("b", "a")
    maker.link("hard", "a/real", kind=tarfile.LNKTYPE)

    tree = unpacked(tmp_path, maker.gz())

    assert (tree / "b" / "soft").read_text() == "text"
    assert (tree / "hard").read_text() == "text"
    assert not (tree / "hard").is_symlink()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "a\\..\\evil"])  # noqa: S108
def test_an_entry_that_leads_out_is_refused_by_name(tmp_path: Path, name: str) -> None:
    error = refusal(tmp_path, TarMaker().add(name, b"x").gz())

    assert error.code == "source.archive.entry"
    assert f"`{name}`" in error.problem


@pytest.mark.parametrize("name", ["../evil", "/evil"])
def test_the_same_holds_for_zip(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path, a_zip({name: b"x"})).code == "source.archive.entry"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../etc", "a/../../x", "b/../.."])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, target: str) -> None:
    error = refusal(tmp_path, TarMaker().link("b", "a").add("a/x").link("link", target).gz())

    assert error.code == "source.link"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    content = TarMaker().link("dir", "..").add("dir/evil", b"x").gz()

    assert refusal(tmp_path, content).code == "source.archive.entry"


def test_a_link_in_the_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    content = TarMaker().add("dir/x", b"x").link("dir", "..").gz()

    assert refusal(tmp_path, content).code == "source.archive.entry"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.BLKTYPE])
def test_devices_and_pipes_are_refused(tmp_path: Path, kind: bytes) -> None:
    assert refusal(tmp_path, TarMaker().add("x", kind=kind).gz()).code == "source.archive.entry"


def test_a_hard_link_to_what_is_not_in_the_archive_is_refused(tmp_path: Path) -> None:
    content = TarMaker().link("x", "etc/passwd", kind=tarfile.LNKTYPE).gz()

    assert refusal(tmp_path, content).code == "source.archive.entry"


def test_a_gzip_bomb_is_refused_early(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(64 * MIB))

    error = refusal(tmp_path, bomb)

    assert error.code == "source.archive.size"


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, a_zip({"x": bytes(64 * MIB)})).code == "source.archive.size"


def test_a_zip_with_wrong_sizes_is_rejected(tmp_path: Path) -> None:
    honest = a_zip({"x": bytes(3 * MIB)})
    size = (3 * MIB).to_bytes(4, "little")

    error = refusal(tmp_path, honest.replace(size, (10).to_bytes(4, "little")))

    assert error.code == "source.archive.broken"


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    content = TarMaker().add("a").add("b").add("c", b"123").gz()

    many = refusal(tmp_path, content, TreeLimits(files=2))

    assert "`c`" in many.problem


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, TarMaker().add("c", b"123").gz(), TreeLimits(file_size=2))

    assert error.code == "source.archive.entry"


def test_an_extended_header_of_any_size_is_not_believed(tmp_path: Path) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 8 * MIB
    content = TarMaker().raw(header.tobuf(tarfile.GNU_FORMAT) + bytes(8 * MIB)).gz()

    assert refusal(tmp_path, content).code == "source.archive.broken"


@pytest.mark.parametrize(
    "content",
    [b"", b"not an archive", a_chart()[:-20], b"PK\x03\x04rest"],
    ids=["empty", "text", "cut off", "zip without an end"],
)
def test_a_broken_archive_is_reported(tmp_path: Path, content: bytes) -> None:
    assert refusal(tmp_path, content).code == "source.archive.broken"


def test_the_last_of_two_entries_with_the_same_name_is_used(tmp_path: Path) -> None:
    tree = unpacked(tmp_path, TarMaker().add("a", b"one").add("a", b"two").gz())

    assert (tree / "a").read_text() == "two"


def test_a_link_in_a_zip_must_stay_inside(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "../../etc/passwd")

    assert refusal(tmp_path, buffer.getvalue()).code == "source.link"
