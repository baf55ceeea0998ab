"""Health scripts in argocd-cm: both forms, how they are merged, and the line of each mistake."""

from __future__ import annotations

import pytest

from tidegate.errors import TidegateError
from tidegate.health.lua import LuaRules, LuaScript, read_lua_rules

NAME = "argocd-cm.yaml"
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\n"


def rules(text: str) -> LuaRules:
    return read_lua_rules(text.encode(), NAME)


def refused(text: str) -> list[tuple[str, int]]:
    """The code and the line of each mistake."""
    with pytest.raises(ExceptionGroup) as caught:
        rules(text)
    errors = [
        exception for exception in caught.value.exceptions if isinstance(exception, TidegateError)
    ]
    assert len(errors) == len(caught.value.exceptions)
    return [(error.code, error.location.line if error.location else -1) for error in errors]


def texts(known: LuaRules) -> dict[str, tuple[str, bool]]:
    return {key: (item.text, item.open_libs) for key, item in known.named.items()}


def lines(known: LuaRules) -> dict[str, int]:
    return {key: item.location.line for key, item in known.named.items() if item.location}


def test_a_config_map_and_its_data_alone_mean_the_same() -> None:
    data = 'resource.customizations.health.example.com_Thing: "return nil"\n'

    whole, alone = rules(f"{HEAD}data:\n  {data}"), rules(data)

    assert texts(whole) == texts(alone) == {"example.com/Thing": ("return nil", False)}
    assert (lines(whole), lines(alone)) == ({"example.com/Thing": 5}, {"example.com/Thing": 1})


def test_the_new_form_names_kinds_of_groups_of_the_core_and_all() -> None:
    known = rules(
        "resource.customizations.health.a.b.c_D: one\n"
        "resource.customizations.health.Pod: two\n"
        "resource.customizations.health.all: three\n"
    )

    assert known.find("a.b.c", "D") == known.named["a.b.c/D"]
    assert {key: text for key, (text, _) in texts(known).items()} == {
        "a.b.c/D": "one",
        "Pod": "two",
        "*/*": "three",
    }


def test_libraries_are_opened_for_scripts_of_both_forms() -> None:
    known = rules(
        'resource.customizations.useOpenLibs.a_B: "true"\n'
        'resource.customizations.useOpenLibs.a_C: "1"\n'
        "resource.customizations.health.a_B: one\n"
        "resource.customizations: |\n"
        "  a/C: {health.lua: two}\n"
        "  a/D: {health.lua: three, health.lua.useOpenLibs: true}\n"
    )

    assert texts(known) == {"a/B": ("one", True), "a/C": ("two", True), "a/D": ("three", True)}


def test_new_keys_override_the_old_form_field_by_field() -> None:
    known = rules(
        "resource.customizations.health.a_B: new\n"
        "resource.customizations: |\n"
        "  a/B: {health.lua: old, health.lua.useOpenLibs: true}\n"
    )

    assert known.named["a/B"].text == "new"
    assert known.named["a/B"].open_libs
    assert lines(known) == {"a/B": 1}


def test_a_script_of_the_old_form_has_the_line_of_its_kind() -> None:
    old = (
        "resource.customizations: |\n  a/B:\n    health.lua: one\n\n  '*.c/*':\n    health.lua: two"
    )

    assert lines(rules(old)) == {"a/B": 2, "*.c/*": 5}
    assert lines(rules('resource.customizations: "a/B: {health.lua: one}"')) == {"a/B": 1}


def test_other_customizations_and_other_settings_are_ignored() -> None:
    known = rules(
        f"{HEAD}data:\n"
        "  url: https://argocd.example.com\n"
        "  resource.exclusions: '[]'\n"
        "  resource.customizations.health: none\n"
        "  resource.customizations.actions.a_B: 'definitions: []'\n"
        "  resource.customizations.ignoreDifferences.all: 'jsonPointers: [/a]'\n"
    )

    assert known == LuaRules({})


def test_other_documents_are_ignored() -> None:
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {key: x}\n"
    known = rules(f"{other}---\n{HEAD}data:\n  resource.customizations.health.Pod: one\n")

    assert list(known.named) == ["Pod"]
    assert lines(known) == {"Pod": 10}


def test_every_mistake_has_its_line() -> None:
    mistakes = refused(
        "resource.customizations.heath.a_B: x\n"
        "resource.customizations.health.a_B_C: x\n"
        "resource.customizations.health.: x\n"
        "resource.customizations.useOpenLibs.a_B: 'yes'\n"
        "resource.customizations.useOpenLibs.a_C: true\n"
        "resource.customizations.health.a_[: x\n"
        "resource.customizations: |\n"
        "  a/B: {health.lua: [1]}\n"
        "  a/C: {health.lua.useOpenLibs: 'true'}\n"
        "  a/D: x\n"
        "  a/E:\n"
    )

    assert sorted(mistakes, key=lambda item: item[1]) == [
        ("health.lua.key", 1),
        ("health.lua.key", 2),
        ("health.lua.key", 3),
        ("health.lua.value", 4),
        ("health.lua.value", 5),
        ("health.lua.key", 6),
        ("file.type", 8),
        ("file.type", 9),
        ("file.type", 10),
        ("file.type", 11),
    ]


def test_a_key_of_the_old_form_is_a_name_or_a_pattern() -> None:
    assert refused("resource.customizations: |\n  a/B: {}\n  '{a': {}\n  '[': {}\n") == [
        ("health.lua.key", 3),
        ("health.lua.key", 4),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "kind: Deployment\n",
        "url: https://argocd.example.com\n",
        "",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
    ],
)
def test_a_file_without_rules_is_refused(text: str) -> None:
    assert refused(text) == [("health.lua.none", 0)]


def test_a_config_map_without_rules_has_none() -> None:
    assert rules(HEAD).find("", "Pod") is None


def test_invalid_yaml_is_refused_inside_and_outside() -> None:
    assert refused("a: [\n")[0][0].startswith("documents.")
    assert refused("resource.customizations: |\n  a/B:\n    health.lua: ]\n") == [
        ("documents.syntax", 3)
    ]


def test_a_script_keeps_its_lines() -> None:
    known = rules("resource.customizations.health.Pod: |\n  local a = 1\n  return nil\n")

    assert known.find("", "Pod") == LuaScript(
        "local a = 1\nreturn nil\n", location=known.named["Pod"].location
    )
