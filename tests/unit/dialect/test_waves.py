"""Waves and weights, in Git and on live objects."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.unit.dialect.documents import WAVE, WEIGHT, a_document, noting
from tidegate.dialect.argo.waves import live_wave, manifest_wave
from tidegate.errors import DialectError
from tidegate.model.k8s.objects import Json


@pytest.mark.parametrize(
    ("notes", "wave"),
    [
        ({}, 0),
        ({WAVE: "3"}, 3),
        ({WAVE: "-5"}, -5),
        ({WAVE: "+2"}, 2),
        ({WAVE: "007"}, 7),
        ({WEIGHT: "4"}, 4),
        ({WAVE: "1", WEIGHT: "4"}, 1),
        ({WAVE: "9223372036854775807"}, 2**63 - 1),
        ({WAVE: None, WEIGHT: "4"}, 4),
    ],
)
def test_a_wave_is_argo_cds_or_else_helms(notes: dict[str, Json], wave: int) -> None:
    assert manifest_wave(a_document(notes=notes)) == wave


@pytest.mark.parametrize(
    "value", ["first", "1.5", "", " 1", "1_000", "0x1", "٣", "9223372036854775808", "9" * 5000]
)
def test_a_wave_that_is_no_whole_number_is_refused_with_its_place(value: str) -> None:
    with pytest.raises(DialectError) as raised:
        manifest_wave(a_document(notes={WAVE: value}, line=7))

    error = raised.value
    assert (error.code, error.location and error.location.line) == ("dialect.wave", 7)
    assert len(error.problem) < 300


def test_a_hook_weight_is_ignored_if_the_wave_is_invalid() -> None:
    with pytest.raises(DialectError, match="sync-wave"):
        manifest_wave(a_document(notes={WAVE: "first", WEIGHT: "4"}))


def test_the_hint_for_a_number_without_quotes_shows_it_in_quotes() -> None:
    with pytest.raises(DialectError) as raised:
        manifest_wave(a_document(notes={WAVE: 3}))

    assert '"3"' in raised.value.hint


@pytest.mark.parametrize(
    "value", [True, 1.5, ["1"], {"a": "1"}], ids=["bool", "float", "list", "mapping"]
)
def test_a_wave_that_is_not_text_is_refused(value: Json, wording: RecordedWording) -> None:
    with pytest.raises(DialectError) as raised:
        manifest_wave(a_document(notes={WAVE: value}))

    assert raised.value.code == "dialect.wave"
    wording(raised.value.problem)


@pytest.mark.parametrize(
    ("notes", "wave"),
    [
        ({}, 0),
        ({WAVE: "3"}, 3),
        ({WAVE: "first"}, 0),
        ({WAVE: "first", WEIGHT: "4"}, 4),
        ({WAVE: "first", WEIGHT: "second"}, 0),
    ],
)
def test_a_live_object_with_an_invalid_wave_falls_back(notes: dict[str, Json], wave: int) -> None:
    assert live_wave(noting(notes)) == wave
