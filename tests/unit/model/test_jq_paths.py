"""Paths in jq's language: where they lead, where jq would end with an error, what is not known."""

from __future__ import annotations

import pytest

from tidegate.model.jq_paths import Path, parse, places_in
from tidegate.model.objects import Json

APP: Json = {"name": "app", "env": [{"name": "A", "value": "1"}], "ports": [80, 443]}
PROXY: Json = {"name": "istio-proxy", "image": "proxy:1"}
BODY: Json = {
    "spec": {"replicas": 3, "containers": [APP, PROXY], "note": None},
    "data": {"app.conf": "x", "é": "y"},
}
ITEM = ("spec", "containers")


@pytest.mark.parametrize(
    ("expression", "places"),
    [
        (".spec.replicas", [("spec", "replicas")]),
        (".data", [("data",)]),
        ('.data["app.conf"]', [("data", "app.conf")]),
        ('.data."app.conf"', [("data", "app.conf")]),
        ('.["data"]["app.conf"]', [("data", "app.conf")]),
        ('.data.["app.conf"]', [("data", "app.conf")]),
        ('.data["\\u00e9"]', [("data", "é")]),
        (".data[]", [("data", "app.conf"), ("data", "é")]),
        (".spec.containers[0]", [(*ITEM, 0)]),
        (".spec.containers[-1].image", [(*ITEM, 1, "image")]),
        (".spec.containers[].name", [(*ITEM, 0, "name"), (*ITEM, 1, "name")]),
        (".spec.containers[].image", [(*ITEM, 1, "image")]),
        (".spec.containers[]?.env[]?.value", [(*ITEM, 0, "env", 0, "value")]),
        (".spec | .containers | .[1]", [(*ITEM, 1)]),
        ('.spec.containers[] | select(.name == "app")', [(*ITEM, 0)]),
        ('.spec.containers[]|select(.name!="app")|.image', [(*ITEM, 1, "image")]),
        ('.spec.containers[] | select("app" == .name) | .name', [(*ITEM, 0, "name")]),
        (".spec.containers[] | select(.env)", [(*ITEM, 0)]),
        (".spec.containers[] | select(.env == null)", [(*ITEM, 1)]),
        (".spec.containers[] | select(.ports[0] == 80)", [(*ITEM, 0)]),
        (".spec.containers[] | select(.ports[0] == 80.0)", [(*ITEM, 0)]),
        ('.spec.containers[] | select(.name | startswith("istio-"))', [(*ITEM, 1)]),
        ('.spec.containers[] | select(.name | endswith("pp"))', [(*ITEM, 0)]),
        (
            '.spec.containers[] | select(.name == "x" or .name == "app" and .image == null)',
            [(*ITEM, 0)],
        ),
        (
            '.spec.containers[] | select((.name == "app" or .image == "proxy:1") and .image)',
            [(*ITEM, 1)],
        ),
    ],
)
def test_an_expression_leads_to_places(expression: str, places: list[Path]) -> None:
    assert list(places_in(expression, BODY)) == places


@pytest.mark.parametrize(
    "expression",
    [
        ".spec.missing",
        ".spec.missing.deeper",
        ".spec.note",
        ".spec.containers[7]",
        ".spec.containers[-7]",
        '.spec.containers[] | select(.name == "other")',
        ".spec.containers[] | select(.name[0]? != 1)",
        '.spec.containers[] | select(.name[0]? != 1 or .name == "app")',
        ".spec.replicas[]?",
        ".spec.replicas.deep?",
        ".spec.containers.name?",
    ],
)
def test_where_nothing_stands_there_is_no_place(expression: str) -> None:
    assert places_in(expression, BODY) == ()


@pytest.mark.parametrize(
    "expression",
    [
        ".spec.replicas[]",
        ".spec.replicas.deep",
        ".spec.containers.name",
        ".spec[0]",
        ".spec.missing[]",
        ".spec.containers[].env[].value",
        '.spec.containers[] | select(.image | startswith("proxy"))',
    ],
)
def test_what_jq_would_end_with_an_error_leads_nowhere_at_all(expression: str) -> None:
    assert places_in(expression, BODY) == ()


@pytest.mark.parametrize(
    "expression",
    [
        "",
        ".",
        "..",
        "spec",
        ".spec,.data",
        ".spec[1:2]",
        ".spec[",
        ".spec]",
        ".spec[true]",
        ".spec[01]",
        '.data["\\q"]',
        ".spec[.name]",
        ".spec |",
        '.data["a\\(1)"]',
        "map(.name)",
        ".spec |= 1",
        "select(.name",
        'select(.name | test("a"))',
        "select(.name | startswith(1))",
        "select(.containers[] == 1)",
        "select(.name > 1)",
        ".spec | del(.a)",
        ".a b",
        "$x",
    ],
)
def test_what_is_not_known_is_refused_with_what_is(expression: str) -> None:
    with pytest.raises(ValueError, match="here are known"):
        parse(expression)
