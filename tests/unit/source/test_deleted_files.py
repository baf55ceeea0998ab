"""Files that go while a tree is read: an editor saves, or a user checks out another branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import SourceError
from tidegate.source.tree import digest_entries, walk_tree


def test_a_file_that_was_deleted_after_the_listing_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("a: 1\n")
    entries = walk_tree(tmp_path)
    file.unlink()

    with pytest.raises(SourceError) as result:
        digest_entries(tmp_path, entries)

    assert result.value.code == "source.local"
    assert result.value.location is not None
    assert result.value.location.name == str(file)
