"""Variables: where they come from, what is put in their place, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.flux.stage import case, lines_with
from tests.support.flux_repository import Layers
from tests.support.repositories import setting
from tidegate.model.k8s.objects import Json, JsonObject


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path)


def data(name: str, **values: str) -> JsonObject:
    return {**setting(name, "flux-system"), "data": dict(values)}


def wanting(**values: str) -> JsonObject:
    """The objects of a unit, with variables in each value."""
    return {**setting("web"), "data": dict(values)}


def taking(*names: str, kind: str = "ConfigMap", **more: Json) -> list[Json]:
    return [{"kind": kind, "name": name, **more} for name in names]


@case(29)
def test_the_last_source_of_a_variable_wins_and_line_breaks_are_removed(
    layers: Layers,
) -> None:
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "later", "namespace": "flux-system"},
        "stringData": {"zone": "az-1b"},
    }
    first = data("first", zone="\naz-1a\n", only="\none\n", place="x")
    layers.more = [first, data("second", place="\nnorth\n"), secret]
    layers.put("apps/web.yaml", wanting(only="<${only}>", place="${place}"))
    layers.put("apps/zone.yaml", {**setting("zone"), "data": {"zone": "${zone}"}})
    sources = [*taking("first", "second"), *taking("later", kind="Secret")]
    layers.unit("apps", postBuild={"substituteFrom": sources})

    result = layers.rendered("apps")

    assert result["web"]["data"] == {"only": "<one>", "place": "north"}
    hidden = str(result["zone"]["data"])
    assert "az-1a" not in hidden
    assert "az-1b" not in hidden, "it is a secret's"


@case(30)
def test_an_unset_variable_without_a_default_is_an_error(layers: Layers) -> None:
    layers.put("apps/web.yaml", wanting(a="${missing}"))
    layers.unit("apps", postBuild={"substitute": {"other": "1"}})

    ran = layers.render("apps")

    assert ran.returncode == 3
    assert lines_with(ran.stderr, '"render.substitute.missing"', "`missing`")


@case(31)
@pytest.mark.parametrize(
    ("strategy", "value"), [("WithVariables", "${color:=blue}"), ("Always", "blue")]
)
def test_without_variables_nothing_is_substituted_unless_the_strategy_is_always(
    layers: Layers, strategy: str, value: str
) -> None:
    layers.put("apps/web.yaml", wanting(color="${color:=blue}"))
    layers.unit("apps", postBuild={"substituteStrategy": strategy})

    assert layers.rendered("apps")["web"]["data"] == {"color": value}


@case(32, 35)
def test_escaped_variables_and_objects_with_substitute_disabled_are_unchanged(
    layers: Layers,
) -> None:
    opted: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "out",
            "annotations": {"kustomize.toolkit.fluxcd.io/substitute": "disabled"},
        },
        "data": {"x": "${x}"},
    }
    layers.put("apps/web.yaml", wanting(escaped="$${x}", other="\\?", set="${x}"), opted)
    layers.unit("apps", postBuild={"substitute": {"x": "1"}})

    result = layers.rendered("apps")

    assert result["web"]["data"] == {"escaped": "${x}", "other": "\\?", "set": 1}
    assert result["out"]["data"] == {"x": "${x}"}


@case(33)
def test_a_missing_source_of_variables_is_an_error_unless_optional(layers: Layers) -> None:
    layers.put("apps/web.yaml", wanting(a="1"))
    layers.unit("apps", postBuild={"substituteFrom": taking("nowhere")})
    layers.unit(
        "calm", path="./apps", postBuild={"substituteFrom": taking("nowhere", optional=True)}
    )

    refused, result = layers.render("apps"), layers.rendered("calm")

    assert refused.returncode == 3
    assert lines_with(
        refused.stderr, '"units.unknown-variables"', "ConfigMap `flux-system/nowhere`"
    )
    assert result["web"]["data"] == {"a": "1"}


@case(34)
def test_one_invalid_variable_name_fails_the_build_even_if_unused(layers: Layers) -> None:
    layers.more = [{**data("odd"), "data": {"my-key": "1"}}]
    layers.put("apps/web.yaml", wanting(a="1"))
    layers.unit("apps", postBuild={"substituteFrom": taking("odd")})

    ran = layers.render("apps")

    assert ran.returncode == 3
    assert lines_with(ran.stderr, '"render.substitute.name"', "`my-key`")
