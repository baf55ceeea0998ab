"""From bytes to documents: encodings, separators, JSON."""

from __future__ import annotations

import pytest

from tidegate.documents import read_documents
from tidegate.documents.split import SIZE_LIMIT, split_documents
from tidegate.errors import DocumentError, Location

TWO = "kind: A\ntext: é\n---\nkind: B\n"


def kinds(source: str | bytes) -> list[object]:
    return [document.body["kind"] for document in read_documents(source, "some.yaml")]


def refusal(source: str | bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read_documents(source, "some.yaml")
    return caught.value


@pytest.mark.parametrize(
    "source",
    [
        TWO,
        TWO.encode(),
        "\ufeff" + TWO,
        b"\xef\xbb\xbf" + TWO.encode(),
        TWO.encode("utf-16"),
        b"\xfe\xff" + TWO.encode("utf-16-be"),
        TWO.replace("\n", "\r\n"),
        "---\n" + TWO,
        "# note\n---\n# note\n---\n\n---\n" + TWO + "---\n---\n",
        TWO.replace("---", "--- # note"),
        TWO.replace("---", "---  \t"),
        TWO.replace("---", "...\n---"),
        "null\n---\n~\n---\n" + TWO,
    ],
)
def test_two_objects_are_read_however_the_file_is_written(source: str | bytes) -> None:
    assert kinds(source) == ["A", "B"]


@pytest.mark.parametrize("source", ["", b"\n", " \n", "# note\n", "---\n---\n", "---", "\ufeff"])
def test_a_file_with_nothing_in_it_gives_no_document(source: str | bytes) -> None:
    assert read_documents(source, "some.yaml") == ()


def test_windows_line_ends_do_not_get_into_blocks() -> None:
    (document,) = read_documents("kind: A\r\ntext: |\r\n  one\r\n  two\r\n", "some.yaml")

    assert document.body["text"] == "one\ntwo\n"


@pytest.mark.parametrize("line", ["--- text", "---text: 1", "----", "--- {kind: A}", "--- |"])
def test_text_after_a_separator_is_refused(line: str) -> None:
    error = refusal(f"kind: A\n{line}\n")

    assert error.code == "documents.separator"
    assert error.location == Location("some.yaml", 2, 1)


@pytest.mark.parametrize("source", ["kind: A\n...\nkind: B\n", "kind: A\r---\rkind: B\r"])
def test_text_that_kubernetes_silently_drops_is_rejected(source: str) -> None:
    error = refusal(source)

    assert error.code == "documents.separator"
    assert error.location is not None
    assert error.location.line in (2, 3)


@pytest.mark.parametrize("line", ["%YAML 1.1", "%YAML 1.2", "%TAG ! tag:x,2002:", "%X y"])
def test_a_directive_is_refused(line: str) -> None:
    error = refusal(f"kind: A\n---\n{line}\n---\nkind: B\n")

    assert error.code == "documents.directive"
    assert error.location == Location("some.yaml", 3, 1)


def test_bytes_that_are_no_utf8_are_refused_with_their_place() -> None:
    error = refusal(b"kind: A\nname: b\xe9\n")

    assert error.code == "documents.encoding"
    assert error.location == Location("some.yaml", 2, 8)


@pytest.mark.parametrize("source", ["kind: \ud800\n", b"\xff\xfek"])
def test_text_that_cannot_be_decoded_is_refused(source: str | bytes) -> None:
    assert refusal(source).code == "documents.encoding"


@pytest.mark.parametrize("sign", ["\0", "\x07", "\x7f", "\uffff"])
def test_a_control_character_is_refused_with_its_place(sign: str) -> None:
    error = refusal(f"kind: A\n---\nkind: é{sign}\n")

    assert error.code == "documents.character"
    assert f" U+{ord(sign):04X} " in error.problem
    assert error.location == Location("some.yaml", 3, 8)


def test_json_values_can_follow_each_other_without_a_separator() -> None:
    documents = read_documents('{"kind": "A"}\n{"kind": "B"}{"kind": "C"}', "some.json")

    assert [document.body["kind"] for document in documents] == ["A", "B", "C"]
    assert [document.location.line for document in documents] == [1, 2, 2]


def test_json_can_start_with_a_byte_order_mark() -> None:
    assert kinds(b'\xef\xbb\xbf{"kind": "A"}{"kind": "B"}') == ["A", "B"]


def test_json_may_be_separated_like_yaml() -> None:
    assert kinds('{"kind": "A"}\n---\n{"kind": "B"}\n') == ["A", "B"]


def test_text_that_starts_like_json_can_be_yaml() -> None:
    assert kinds("{kind: A, on: off} # note\n") == ["A"]


def test_json_writes_large_characters_as_two_escapes() -> None:
    (document,) = read_documents(
        r'{"a": "\ud83d\ude00", "b": "\\ud83d", "c": "\ud83d!"}', "some.json"
    )

    assert document.body == {"a": "\U0001f600", "b": r"\ud83d", "c": "\ufffd!"}


def test_a_file_that_is_too_large_is_refused_before_it_is_read() -> None:
    assert refusal(b" " * (SIZE_LIMIT + 1)).code == "documents.size"


def test_parts_keep_their_numbers_when_some_are_empty() -> None:
    parts = split_documents("---\n\n---\nkind: A\n", "some.yaml")

    assert [(part.number, part.lines_before) for part in parts] == [(0, 0), (1, 0), (2, 2)]
