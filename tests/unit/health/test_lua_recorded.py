"""Scripts and settings of our own, and what Argo CD 3.5.6 itself made of each.

tests/data/health/lua.jsonl is written by `python -m tests.conformance.oracles.argo_health.lua`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from tidegate.errors import sanitize
from tidegate.health.argo import judge
from tidegate.health.lua import LuaRules, read_lua_rules, read_lua_verdict
from tidegate.health.lua.interpreter import LuaInterpreter
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.times import Ms

ANSWERS = Path(__file__).parents[2] / "data" / "health" / "lua.jsonl"
OUR_WORDS = ("its script says ", "bound to a volume")
"""How a sentence begins where Argo CD gives no message."""


class Answer(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""


class Asked(msgspec.Struct, frozen=True):
    """A case, and Argo CD's answer: none, one that is an error, or no answer but a refusal."""

    name: str
    data: dict[str, str]
    answer: Answer | None
    error: str = ""
    refusal: str = ""


class Judged(msgspec.Struct, frozen=True):
    """A case and what we make of it; no rules where we refuse the settings."""

    theirs: Asked
    rules: LuaRules | None
    ours: Verdict | None


@cache
def judged() -> tuple[Judged, ...]:
    machine = LuaInterpreter()
    return tuple(_judge(machine, line) for line in ANSWERS.read_bytes().splitlines())


def _judge(machine: LuaInterpreter, line: bytes) -> Judged:
    document = msgspec.json.decode(line, type=Asked)
    body: dict[str, Json] = msgspec.json.decode(line)["body"]
    try:
        rules = read_lua_rules(msgspec.json.encode(document.data), "argocd-cm.yaml")
    except ExceptionGroup:
        return Judged(document, None, None)
    request = rules.make_request(body, Ms(0))
    if request is None:
        return Judged(document, rules, judge(body))
    return Judged(document, rules, read_lua_verdict(machine.answer(request.argument), body))


def list_messages(verdict: Verdict | None) -> tuple[str, str] | None:
    """A verdict in the words of Argo CD."""
    if verdict is None or verdict.reason == "NoStatus":
        return None if verdict is None else ("", "")
    sentence = "" if verdict.message.startswith(OUR_WORDS) else verdict.message
    return verdict.health.value, sentence


def test_settings_that_argo_cd_refuses_are_refused() -> None:
    differing = [
        item.theirs for item in judged() if (item.rules is None) != bool(item.theirs.refusal)
    ]

    assert differing == []


def test_what_breaks_in_argo_cd_breaks_here() -> None:
    differing = [
        (item.theirs, item.ours)
        for item in judged()
        if item.rules is not None
        if (item.ours is not None and item.ours.reason == "LuaError") != bool(item.theirs.error)
    ]

    assert differing == []


def test_every_other_script_says_what_it_says_in_argo_cd() -> None:
    differing = [
        (item.theirs, item.ours)
        for item in judged()
        if item.rules is not None and not item.theirs.error
        if list_messages(item.ours)
        != (
            item.theirs.answer and (item.theirs.answer.status, sanitize(item.theirs.answer.message))
        )
    ]

    assert differing == []


def test_the_answers_cover_every_state_and_every_way_to_fail() -> None:
    states = {item.theirs.answer.status for item in judged() if item.theirs.answer is not None}

    assert states == {"", *Health}
    assert sum(bool(item.theirs.error) for item in judged()) >= 15
    assert sum(bool(item.theirs.refusal) for item in judged()) >= 8
    assert len({item.theirs.name for item in judged()}) >= 110
