from __future__ import annotations

import pytest

from tidegate.model.plans.change import MASK, DiffAction, Difference, FieldChange, mask_fields


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("spec.password", ("spec", "password")),
        ("spec.users[name=anna].password", ("spec", "users", 0, "password")),
        ("spec.users", ("spec", "users", 0, "password")),
        ("spec.password.value", ("spec", "password")),
        ("data[app.yaml]", ("data", "app.yaml")),
    ],
)
def test_hidden_places_are_masked_and_so_is_what_holds_them(
    path: str, hidden: tuple[str | int, ...]
) -> None:
    difference = Difference(action=DiffAction.CHANGE, fields=(FieldChange(path, "", "secret"),))

    masked = mask_fields(difference, [hidden])

    assert masked.fields == (FieldChange(path, "", MASK),)


@pytest.mark.parametrize("path", ["spec.passwordRef", "spec.pass", "data.password"])
def test_other_locations_are_shown(path: str) -> None:
    difference = Difference(action=DiffAction.CHANGE, fields=(FieldChange(path, "a", "b"),))

    assert mask_fields(difference, [("spec", "password")]) == difference
