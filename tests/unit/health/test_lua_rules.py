"""Which script is for which object, and what its answer means."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.health.lua import NO_LUA_RULES, LuaRules, LuaScript, read_lua_verdict
from tidegate.health.lua.interpreter import LuaInterpreter
from tidegate.health.lua.messages import (
    NoScriptResult,
    ScriptFailed,
    ScriptResult,
    decode_lua_request,
    encode_lua_response,
)
from tidegate.health.lua.patterns import compile_pattern
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.times import Ms

APPLICATION = """\
hs = {}
hs.status = "Progressing"
hs.message = ""
if obj.status ~= nil then
  if obj.status.health ~= nil then
    hs.status = obj.status.health.status
    if obj.status.health.message ~= nil then
      hs.message = obj.status.health.message
    end
  end
end
return hs
"""


def a_body(kind: str = "Thing", group: str = "example.com", **parts: Json) -> JsonObject:
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "one"}, **parts}


def rules(**scripts: str) -> LuaRules:
    """Scripts by their keys, with `__` for the `/`, each with its text."""
    return LuaRules.from_scripts(
        (key.replace("__", "/"), LuaScript(text)) for key, text in scripts.items()
    )


def evaluated(
    script: str, body: JsonObject, now: Ms = Ms(0), *, open_libs: bool = False
) -> Verdict:
    known = LuaRules({"example.com/Thing": LuaScript(script, open_libs)})
    request = known.make_request(body, now)
    assert request is not None
    return read_lua_verdict(LuaInterpreter().answer(request.argument), body)


def test_a_script_is_found_by_group_and_kind_and_of_the_core_group_by_kind_alone() -> None:
    known = rules(apps__Deployment="of apps", Pod="of core")

    assert known.find("apps", "Deployment") == LuaScript("of apps")
    assert known.find("", "Pod") == LuaScript("of core")
    assert known.find("extensions", "Deployment") is None
    assert known.find("", "Deployment") is None


def test_a_name_takes_precedence_over_patterns_and_longer_patterns_over_shorter() -> None:
    keys = ("*/*", "*.example.com/*", "*.example.com/Th*", "a.example.com/Thing")
    known = LuaRules.from_scripts((key, LuaScript(key)) for key in keys)

    matches = [known.find("a.example.com", kind) for kind in ("Thing", "Three", "One")]

    assert [item and item.text for item in matches] == [keys[3], keys[2], keys[1]]
    assert known.find("other.org", "One") == LuaScript("*/*")


def test_the_first_of_patterns_with_the_same_length_is_used() -> None:
    known = LuaRules.from_scripts([("*ab", LuaScript("first")), ("ab*", LuaScript("second"))])

    assert known.find("", "ab") == LuaScript("first")


def test_an_empty_script_is_ignored() -> None:
    known = LuaRules.from_scripts([("example.com/Thing", LuaScript("")), ("*/*", LuaScript("all"))])

    assert known.find("example.com", "Thing") == LuaScript("all")


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("a*c", "a/b/c", "a/b"),
        ("a**c", "abc", "ab"),
        ("a?c", "a/c", "ac"),
        ("[ab]c", "bc", "cc"),
        ("[!ab]c", "cc", "ac"),
        ("[a-c]", "b", "-"),
        ("[!a-c]", "d", "b"),
        ("{a,b*}/c", "bx/c", "x/c"),
        ("{a{b,c},d}", "ac", "ad"),
        ("a,b", "a,b", "a"),
        (r"a\*", "a*", "ab"),
        ("a.c", "a.c", "abc"),
        ("a+(b)|$", "a+(b)|$", "aa(b)|$"),
    ],
)
def test_patterns_match_like_in_argo_cd(pattern: str, fits: str, fails: str) -> None:
    compiled = compile_pattern(pattern)

    assert compiled.fullmatch(fits)
    assert not compiled.fullmatch(fails)


@pytest.mark.parametrize("pattern", ["[a", "{a", "a}", "]", "a\\", "[z-a]", "[]"])
def test_an_invalid_pattern_is_refused(pattern: str, wording: RecordedWording) -> None:
    with pytest.raises(ValueError, match=r".+") as refusal:
        compile_pattern(pattern)

    wording(str(refusal.value))


def test_an_object_without_a_script_needs_no_worker() -> None:
    assert rules(example__Other="return nil").make_request(a_body(), Ms(0)) is None
    assert NO_LUA_RULES.make_request(a_body(), Ms(0)) is None


def test_an_object_that_is_being_deleted_needs_no_script_unless_it_is_held() -> None:
    known = LuaRules({"example.com/Thing": LuaScript("return nil")})
    leaving: JsonObject = {"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    held: JsonObject = {**leaving, "finalizers": ["argocd.argoproj.io/hook-finalizer"]}

    assert known.make_request({**a_body(), "metadata": leaving}, Ms(0)) is None
    assert known.make_request({**a_body(), "metadata": held}, Ms(0)) is not None


def test_a_request_contains_script_object_and_time() -> None:
    known = LuaRules({"example.com/Thing": LuaScript("return nil", open_libs=True)})

    request = known.make_request(a_body(), Ms(61_500))

    assert request is not None
    question = decode_lua_request(request.argument)
    assert request.name == "lua"
    assert (question.script, question.open_libs, question.now) == ("return nil", True, 61)
    assert b'"Thing"' in question.body
    assert "Thing" not in repr(question)


def test_a_verdict_has_the_message_of_the_script_and_the_generation_of_the_status() -> None:
    body = a_body(status={"observedGeneration": 7})

    verdict = read_lua_verdict(encode_lua_response(ScriptResult("Degraded", "two\nlines")), body)

    assert verdict == Verdict(Health.DEGRADED, "Degraded", "two lines", observed_generation=7)
    assert verdict.is_checked
    assert not verdict.is_final


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ScriptResult("fine", ""), "InvalidStatus"),
        (NoScriptResult(), "NoStatus"),
        (ScriptFailed("no\tmemory"), "LuaError"),
    ],
    ids=["invalid status", "no status", "error"],
)
def test_without_a_result_of_its_script_the_health_is_unknown(
    answer: ScriptResult | NoScriptResult | ScriptFailed, reason: str, wording: RecordedWording
) -> None:
    verdict = read_lua_verdict(encode_lua_response(answer), a_body())

    assert verdict == Verdict(Health.UNKNOWN, reason, verdict.message)
    wording(verdict.message)


@pytest.mark.parametrize("seen", ["7", True, 7.5, None, [7]])
def test_an_observed_generation_that_is_not_a_number_is_ignored(seen: Json) -> None:
    body = a_body(status={"observedGeneration": seen})

    assert (
        read_lua_verdict(encode_lua_response(ScriptResult("Healthy", "")), body).observed_generation
        == 0
    )


def test_an_application_has_the_health_of_its_status() -> None:
    ill: Json = {"health": {"status": "Degraded", "message": "no quota"}}

    assert evaluated(APPLICATION, a_body()).health is Health.PROGRESSING
    assert evaluated(APPLICATION, a_body(status=ill)) == Verdict(
        Health.DEGRADED, "Degraded", "no quota"
    )


def test_the_time_of_a_script_is_that_of_the_world_in_utc() -> None:
    script = 'local os = require("os") return {status = "Healthy", message = os.date("%F %X")}'

    assert evaluated(script, a_body(), Ms(86_400_000)).message == "1970-01-02 00:00:00"


def test_a_number_of_more_than_64_bits_is_still_a_number() -> None:
    script = 'return {status = "Healthy", message = type(obj.spec.huge)}'

    assert evaluated(script, a_body(spec={"huge": 2**70, "none": None})).message == "number"


def test_bytes_that_are_no_text_are_replaced() -> None:
    script = 'return {status = "Healthy", message = obj.spec.word .. ("\\255"):rep(2)}'

    text = evaluated(script, a_body(spec={"word": "grün"}), open_libs=True).message

    assert text == "grün��"
