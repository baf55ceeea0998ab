"""Templates and stages: how values are made from an object, and stages recognized by a status."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.knowledge.templates import make_scope, render, render_text, status_matches
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.k8s.paths import find_value, parse_path
from tidegate.model.operators.checks import check_passes
from tidegate.model.operators.rows import Check

KIND = Kind("example.com", "v1", "Widget")
BODY: JsonObject = {
    "metadata": {"name": "it", "namespace": "shop", "labels": {"a.b/c": "x"}, "generation": 4},
    "spec": {
        "size": 3,
        "on": False,
        "empty": "",
        "keys": {"b": 1, "a": 2},
        "list": [{"name": "one", "type": "T"}, {"name": "two", "type": "U"}],
        "server": "https://vault.infra.svc.cluster.local:8200/v1",
    },
}
SCOPE = make_scope(BODY, KIND)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("fixed", "fixed"),
        ("${name}", "it"),
        ("${kind} ${namespace}/${name}", "Widget shop/it"),
        ("${spec.size}", 3),
        ("size-${spec.size}", "size-3"),
        ("${spec.on}", False),
        ("is-${spec.on}", "is-false"),
        ("${spec.none|spec.empty|'last'}", "last"),
        ("${spec.none|7}", 7),
        ("${spec.none}", None),
        ("a-${spec.none}", None),
        ("a-${spec.keys}", None),
        ("${spec.list[1].name}", "two"),
        ("${spec.list[9].name}", None),
        ("${spec.list[type=U].name}", "two"),
        ('${metadata.labels["a.b/c"]}', "x"),
        ("${count(spec.list)}", 2),
        ("${text(spec.size)}", "3"),
        ("${lower(kind)}", "widget"),
    ],
)
def test_a_text_is_filled_from_the_object(template: str, expected: Json) -> None:
    assert render(template, SCOPE) == expected


@pytest.mark.parametrize(
    ("address", "service", "namespace"),
    [
        ("http://vault:8200", "vault", None),
        ("vault.infra:8200", "vault", "infra"),
        ("https://vault.infra.svc", "vault", "infra"),
        ("tcp://vault.infra.svc.cluster.local:8200", "vault", "infra"),
        ("https://example.com", None, None),
        ("https://vault.example.com:8200", None, None),
        ("", None, None),
    ],
)
def test_an_address_is_a_service_of_the_cluster_or_external(
    address: str, service: str | None, namespace: str | None
) -> None:
    scope: JsonObject = {"at": address}

    named = (render("${service(at)}", scope), render("${namespace_of(at)}", scope))

    assert named == (service, namespace)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({"a": "${spec.none}", "b": "${name}", "c": None}, {"b": "it"}),
        (["${spec.none}", "${name}"], ["it"]),
        ({"$for": "spec.keys", "$value": "x"}, {"a": "x", "b": "x"}),
        ({"$for": "spec.list", "$key": "${item.name}", "$value": "${key}"}, {"one": 0, "two": 1}),
        ({"$for": "spec.list", "$item": "${item.name}"}, ["one", "two"]),
        ({"$for": "spec.none", "$item": "x"}, []),
        ({"$merge": [{"a": 1}, {"$for": "spec.keys", "$value": 9}]}, {"a": 9, "b": 9}),
        ({"$if": "spec.size", "$then": "yes", "$else": "no"}, "yes"),
        ({"$if": "spec.none", "$then": "yes", "$else": "no"}, "no"),
        ({"$if": "spec.size", "$is": 4, "$then": "yes"}, None),
        ({"${name}-x": 1}, {"it-x": 1}),
    ],
)
def test_a_mapping_is_filled_and_leaves_out_what_is_not_there(
    template: object, expected: Json
) -> None:
    assert render(template, SCOPE) == expected


@pytest.mark.parametrize("path", ["", ".spec", "spec..a", "spec[", "spec[a b]", "a b", "spec.$x"])
def test_an_invalid_path_is_refused(path: str, wording: RecordedWording) -> None:
    with pytest.raises(ValueError, match=r".+") as refusal:
        parse_path(path)

    wording(str(refusal.value))


def test_a_path_that_leads_nowhere_finds_nothing() -> None:
    assert find_value(BODY, "spec.size.deeper") is None


@pytest.mark.parametrize(
    ("check", "passes"),
    [
        (Check(path="spec.size"), True),
        (Check(path="spec.on"), False),
        (Check(path="spec.on", values=(False,)), True),
        (Check(path="spec.size", values=(3, 4)), True),
        (Check(path="spec.size", values=("3",)), False),
        (Check(path="spec.none", absent=True), True),
        (Check(condition="Ready"), True),
        (Check(condition="Ready", values=("False",)), False),
        (Check(condition="Other"), False),
    ],
)
def test_a_check_passes_or_not(check: Check, *, passes: bool) -> None:
    body: JsonObject = {**BODY, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    assert check_passes(check, body) is passes


EXPECTED_STATUS: JsonObject = {
    "phase": "Done",
    "seen": 2,
    "conditions": [{"type": "Ready", "status": "True"}],
}


@pytest.mark.parametrize(
    ("status", "matches"),
    [
        (EXPECTED_STATUS, True),
        ({"phase": "Done"}, True),
        ({**EXPECTED_STATUS, "extra": 1}, True),
        ({**EXPECTED_STATUS, "seen": 1}, False),
        ({**EXPECTED_STATUS, "seen": True}, False),
        ({}, False),
        (None, False),
        ({"other": 1}, False),
        ({**EXPECTED_STATUS, "conditions": []}, False),
        ({**EXPECTED_STATUS, "conditions": [{"type": "Other", "status": "True"}]}, False),
    ],
)
def test_a_status_shows_a_stage_if_it_agrees_somewhere_and_differs_nowhere(
    status: Json, *, matches: bool
) -> None:
    assert status_matches(status, EXPECTED_STATUS) is matches


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["create", "--secret-name=tls"], "tls"),
        (["create", "--secret-name", "tls", "--host=a"], "tls"),
        (["create", "--secret-name"], ""),
        (["create", "--secret-names=tls"], ""),
        ("--secret-name=tls", ""),
    ],
)
def test_an_option_is_found_among_arguments(args: Json, expected: str) -> None:
    assert render_text("${option(spec.args,secret-name)}", {"spec": {"args": args}}) == expected
