"""Variables of a build in Argo CD."""

from __future__ import annotations

import pytest

from tidegate.model.units.rendering import ArgoBuild
from tidegate.render.argocd_variables import expand

VARIABLES = {"A": "x", "B_2": "y", "1": "first"}


def test_a_build_has_the_variables_of_argo() -> None:
    build = ArgoBuild(
        name="shop", namespace="prod", revision="0123456789abcdef", target_revision="main"
    )

    variables = build.variables()

    assert variables["ARGOCD_APP_NAME"] == "shop"
    assert variables["ARGOCD_APP_PROJECT_NAME"] == "default"
    assert variables["ARGOCD_APP_REVISION_SHORT"] == "0123456"
    assert variables["ARGOCD_APP_REVISION_SHORT_8"] == "01234567"
    assert variables["ARGOCD_APP_SOURCE_TARGET_REVISION"] == "main"
    assert len(variables) == 9


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$A", "x"),
        ("${A}-$B_2.yaml", "x-y.yaml"),
        ("$AB", ""),
        ("${unknown}a", "a"),
        ("$$A", "$A"),
        ("${$}", "$"),
        ("a$", "a$"),
        ("$.a", "$.a"),
        ("$10", "first0"),
        ("${A", "A"),
        ("${}a", "a"),
        ("plain", "plain"),
    ],
)
def test_variables_are_expanded_like_go(text: str, expanded: str) -> None:
    assert expand(text, VARIABLES) == expanded
