"""The file in which rows are ready to be used says what the rows say."""

from __future__ import annotations

import msgspec
import pytest

from tidegate.knowledge.reader import READY, ReadyRows, digest_of, read_rows, row_texts


def in_lines(ready: ReadyRows) -> bytes:
    """One row a line, so that a change shows as such."""
    lists = (
        f'"{key}":[\n' + ",\n".join(msgspec.json.encode(one).decode() for one in rows) + "]"
        for key, rows in msgspec.to_builtins(ready.known).items()
    )
    return f'{{"digest":"{ready.digest}","known":{{{",".join(lists)}}}}}\n'.encode()


def test_the_rows_that_are_ready_are_those_of_the_files(pytestconfig: pytest.Config) -> None:
    texts = row_texts()
    fresh = ReadyRows(digest_of(texts), read_rows(texts))
    if pytestconfig.getoption("--golden"):
        READY.write_bytes(in_lines(fresh))

    kept = msgspec.json.decode(READY.read_bytes(), type=ReadyRows)

    assert kept == fresh, "run this test with --golden"
