"""The file that is closest to a directory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.workspace.discovery.closest_file import ClosestFileIndex

paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


def apart(item: str, other: str) -> int:
    """The directories between two files, counted one by one."""
    first, second = item.split("/")[:-1], other.split("/")[:-1]
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    return len(first) + len(second)


@given(st.lists(paths), paths)
def test_the_nearest_file_is_found(files: list[str], near: str) -> None:
    nearest = ClosestFileIndex[str, int]()
    for number, file in enumerate(files):
        nearest.add("name", file, number)
        nearest.add("other", f"{near}/{file}", number)

    result = nearest.find("name", near)

    closest = min(((apart(file, near), file) for file in files), default=None)
    last = {file: number for number, file in enumerate(files)}
    assert result == (None if closest is None else (closest, last[closest[1]]))
    assert nearest.find("nobody", near) is None
