"""Files that users write for us: decoded by a type, every mistake with its location."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import msgspec
import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.documents.decoder import FileProblem, decode, decode_single, decode_with_locations
from tidegate.errors import FileError, TidegateError
from tidegate.model.times import Duration, Ms, WholeSeconds


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Boat(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="form", tag="boat"):
    crew: Annotated[int, msgspec.Meta(ge=1)]


class Raft(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="form", tag="raft"):
    drifts: bool = False


class Harbour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    opens: Duration = Ms(0)
    tide: WholeSeconds | None = None
    colour: Colour = Colour.BLUE
    ships: tuple[Boat | Raft, ...] = ()
    depth: Annotated[float, msgspec.Meta(ge=0, le=9)] = 1
    flags: str | tuple[str, ...] = ()
    notes: dict[str, object] = {}


def named_once(harbours: Harbour) -> Iterator[FileProblem]:
    if harbours.name == "nowhere":
        yield ("name",), FileError("file.value", "`nowhere` is reserved", hint="rename it")


def mistakes(text: str) -> list[str]:
    with pytest.raises(ExceptionGroup, match=r"harbour h\.yaml") as caught:
        decode(text.encode(), "h.yaml", Harbour, noun="harbour", check=named_once)
    errors = [
        exception for exception in caught.value.exceptions if isinstance(exception, TidegateError)
    ]
    assert len(errors) == len(caught.value.exceptions)
    assert all(error.hint for error in errors if error.code.startswith("file."))
    return [f"{error.code} {error.location} {error.problem}" for error in errors]


def test_a_file_becomes_a_value_of_its_type() -> None:
    text = (
        b"name: here\nopens: 1m30s\ntide: 0\ncolour: red\nflags: one\ndepth: 2\n"
        b"ships: [{form: boat, crew: 3}, {form: raft, drifts: true}]\nnotes: {any: [thing, 1]}\n"
    )

    assert decode_single(text, "h.yaml", Harbour, noun="harbour") == Harbour(
        name="here",
        opens=Ms(90_000),
        tide=Ms(0),
        colour=Colour.RED,
        flags="one",
        depth=2,
        ships=(Boat(3), Raft(drifts=True)),
        notes={"any": ["thing", 1]},
    )


def test_a_key_without_a_value_is_not_there() -> None:
    (harbour,) = decode(b"name: a\nships:\ntide: null\n", "h.yaml", Harbour, noun="harbour")

    assert harbour == Harbour(name="a")
    (mistake,) = mistakes("name:\n")
    assert mistake.startswith("file.missing h.yaml:1:1 ")
    assert "`name`" in mistake


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        ("names: a\nname: a\n", "file.key", "names"),
        ("- a\n", "file.type", ""),
        ("name: 3\n", "file.type", "name"),
        ("name: nowhere\n", "file.value", "name"),
    ],
    ids=["unknown key", "list", "number", "check"],
)
def test_a_mistake_at_the_top_is_reported_with_its_place(
    text: str, code: str, field: str, wording: RecordedWording
) -> None:
    (mistake,) = mistakes(text)

    assert mistake.startswith(f"{code} h.yaml:1:1 ({field}) " if field else f"{code} h.yaml:1:1 ")
    wording(mistake)


@pytest.mark.parametrize(
    ("line", "code", "field"),
    [
        ("opens: soon", "file.duration", "opens"),
        ("opens: 90", "file.duration", "opens"),
        ("opens: -1s", "file.value", "opens"),
        ("tide: 1500ms", "file.value", "tide"),
        ("colour: reed", "file.value", "colour"),
        ("depth: 10", "file.value", "depth"),
        ("depth: deep", "file.type", "depth"),
        ("depth: true", "file.type", "depth"),
        ("flags: {}", "file.type", "flags"),
        ("flags: [a, 1]", "file.type", "flags[1]"),
        ("ships: {}", "file.type", "ships"),
        ("ships: [1]", "file.type", "ships[0]"),
        ("ships: [{crew: 1}]", "file.missing", "ships[0]"),
        ("ships: [{form: bot}]", "file.value", "ships[0].form"),
        ("ships: [{form: boat}]", "file.missing", "ships[0]"),
        ("ships: [{form: raft, crew: 1}]", "file.key", "ships[0].crew"),
        ("ships: [{form: boat, crew: 0}]", "file.value", "ships[0].crew"),
        ("notes: [1]", "file.type", "notes"),
    ],
)
def test_a_mistake_is_reported_at_its_key(
    line: str, code: str, field: str, wording: RecordedWording
) -> None:
    (mistake,) = mistakes(f"name: a\n{line}\n")

    reported, place, key, _ = mistake.split(" ", 3)
    assert (reported, key) == (code, f"({field})")
    assert place.startswith("h.yaml:2:")
    wording(mistake)


def test_all_mistakes_of_all_documents_are_reported_by_line() -> None:
    text = "names: a\nname: a\nname: b\ndepth: 10\n---\nname: {}\nships: [{form: boat}]\n"

    assert [mistake.split(" ")[:2] for mistake in mistakes(text)] == [
        ["file.key", "h.yaml:1:1"],
        ["file.duplicate", "h.yaml:3:1"],
        ["file.value", "h.yaml:4:1"],
        ["file.type", "h.yaml:6:1"],
        ["file.missing", "h.yaml:7:9"],
    ]


def test_invalid_yaml_is_a_syntax_error() -> None:
    assert mistakes("name: [\n")[0].startswith("documents.syntax")


def test_a_file_of_one_document_may_be_empty_and_has_no_second() -> None:
    class Pier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        length: int = 7

    with pytest.raises(ExceptionGroup) as caught:
        decode_single(b"length: 1\n---\nlength: 2\n", "p.yaml", Pier, noun="pier")

    (error,) = caught.value.exceptions
    assert decode_single(b"# later\n", "p.yaml", Pier, noun="pier") == Pier()
    assert isinstance(error, FileError)
    assert (error.code, str(error.location)) == ("file.documents", "p.yaml:3:1")


def test_the_location_of_a_field_is_available() -> None:
    text = b"# a harbour\n---\nname: here\nships:\n- {form: raft}\n"

    result, place_of = decode_with_locations(text, "h.yaml", Harbour, noun="harbour")

    assert result.name == "here"
    assert (place_of(("name",)).line, place_of(("ships", 0)).line) == (3, 5)
    assert place_of(("ships", 0, "drifts")) == place_of(("ships", 0))


def test_an_empty_file_has_only_the_location_of_the_file() -> None:
    result, place_of = decode_with_locations(b"", "r.yaml", Raft, noun="raft")

    assert (result, str(place_of(("drifts",)))) == (Raft(), "r.yaml")
