"""Options of an object and of its unit, as Argo CD reads them."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.unit.dialect.documents import OPTIONS, noting
from tidegate.dialect.argo.options import (
    UNIT_OPTIONS,
    option_problem,
    read_argo_options,
    split_list,
    string_annotations,
    with_sync_options,
)
from tidegate.model.k8s.objects import Json, Propagation
from tidegate.model.units.policy import ObjectOptions, Permission, Policy


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Replace=true", ("Replace=true",)),
        (" Replace=true ,\tForce=true", ("Replace=true", "Force=true")),
        ("a,,b, ,", ("a", "b")),
        ("a,b,a", ("a", "b")),
        ("", ()),
    ],
)
def test_a_list_is_trimmed_and_has_nothing_twice(text: str, parts: tuple[str, ...]) -> None:
    assert split_list(text) == parts


def read(body: dict[str, Json], *options: str) -> ObjectOptions:
    """How an object of a unit with these options wants to be treated."""
    return read_argo_options(body, with_sync_options(Policy(), options).object_options)


def test_the_first_value_of_an_option_counts() -> None:
    assert read({}, "Prune=confirm", "Prune=false").prune is Permission.ASK


def test_an_option_without_a_value_is_ignored() -> None:
    unit_resource = noting({OPTIONS: "Prune,Pruned=true"})

    assert read(unit_resource, "Prune=false").prune is Permission.NO


def test_an_option_may_have_an_empty_value() -> None:
    assert read(noting({OPTIONS: "Prune="}), "Prune=false").prune is Permission.YES


def test_annotations_that_are_no_texts_are_left_out() -> None:
    assert string_annotations(noting({"a": "1", "b": 2, "c": None})) == {"a": "1"}


def test_an_object_without_annotations_has_no_wishes() -> None:
    assert read({"metadata": {}}) == ObjectOptions()


@pytest.mark.parametrize(
    ("option", "handling"),
    [
        ("Replace=true", ObjectOptions(replace=True)),
        ("Force=true", ObjectOptions(force=True)),
        ("Validate=false", ObjectOptions(validate=False)),
        ("SkipDryRunOnMissingResource=true", ObjectOptions(skip_missing_kind=True)),
        ("PruneLast=true", ObjectOptions(prune_last=True)),
        ("Prune=false", ObjectOptions(prune=Permission.NO)),
        ("Prune=confirm", ObjectOptions(prune=Permission.ASK)),
        ("Delete=false", ObjectOptions(delete=Permission.NO)),
        ("Delete=confirm", ObjectOptions(delete=Permission.ASK)),
    ],
)
def test_each_option_sets_its_field(option: str, handling: ObjectOptions) -> None:
    assert read(noting({OPTIONS: option})) == handling


@pytest.mark.parametrize("option", ["Prune=False", "prune=false", "Replace=True", "Replace"])
def test_options_are_read_letter_by_letter(option: str) -> None:
    assert read(noting({OPTIONS: option})) == ObjectOptions()


@pytest.mark.parametrize(
    ("option", "handling"),
    [
        ("Replace=true", ObjectOptions(replace=True)),
        ("Validate=false", ObjectOptions(validate=False)),
        ("PruneLast=true", ObjectOptions(prune_last=True)),
        ("Prune=false", ObjectOptions(prune=Permission.NO)),
        ("Delete=confirm", ObjectOptions(delete=Permission.ASK)),
    ],
)
def test_a_unit_sets_options_for_all_its_objects(option: str, handling: ObjectOptions) -> None:
    assert read({"metadata": {}}, option) == handling


def test_a_unit_cannot_force_all_its_objects() -> None:
    assert read({"metadata": {}}, "Force=true") == ObjectOptions()


@pytest.mark.parametrize("value", ["true", "foo", ""])
def test_any_value_on_the_object_overrides_the_units(value: str) -> None:
    body = noting({OPTIONS: f"Prune={value},Delete={value}"})

    assert read(body, "Prune=false", "Delete=false") == ObjectOptions()


def test_confirming_on_the_object_overrides_a_no_of_the_unit() -> None:
    body = noting({OPTIONS: "Prune=confirm"})

    assert read(body, "Prune=false").prune is Permission.ASK


def test_an_object_cannot_take_back_a_replacement() -> None:
    assert read(noting({OPTIONS: "Replace=false"}), "Replace=true").replace


@pytest.mark.parametrize("policy", ["keep", "other, keep"])
def test_resource_policy_keep_survives_a_deletion_but_not_pruning(policy: str) -> None:
    body = noting({"helm.sh/resource-policy": policy, OPTIONS: "Delete=true"})

    assert read(body) == ObjectOptions(delete=Permission.NO)


@pytest.mark.parametrize(
    "option",
    [f"{name}={value}" for name, values in UNIT_OPTIONS.items() for value in values],
)
def test_nothing_is_wrong_with_the_options_there_are(option: str) -> None:
    assert option_problem(option) == ""


@pytest.mark.parametrize(
    "option",
    [
        "CreateNamespaces=true",
        "createnamespace=true",
        "Force=true",
        "Prune",
        "Prune=maybe",
        "Replace=True",
        "=true",
    ],
)
def test_an_invalid_option_of_a_unit_is_reported_with_the_valid_ones(
    option: str, wording: RecordedWording
) -> None:
    wording(option_problem(option))


@pytest.mark.parametrize(
    ("values", "propagation"),
    [
        ((), Propagation.FOREGROUND),
        (("orphan",), Propagation.ORPHAN),
        (("orphan", "foreground"), Propagation.FOREGROUND),
        (("foreground", "orphan", "background"), Propagation.BACKGROUND),
        (("Orphan",), Propagation.FOREGROUND),
    ],
)
def test_a_unit_sets_the_propagation_of_deletions(
    values: tuple[str, ...], propagation: Propagation
) -> None:
    defaults = tuple(f"PrunePropagationPolicy={value}" for value in values)

    assert read(noting({}), *defaults).propagation is propagation


def test_an_object_does_not_set_the_propagation_of_deletions() -> None:
    unit_resource = noting({OPTIONS: "PrunePropagationPolicy=orphan"})

    assert read(unit_resource).propagation is Propagation.FOREGROUND
