"""Scripts and settings of our own, and the result of Argo CD 3.5.6 itself for each.

tests/data/health/lua.jsonl is written by `python -m tests.conformance.oracles.argo_health.lua`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import sanitize
from tidegate.health.argo import judge
from tidegate.health.lua import LuaRules, read_lua_rules, read_lua_verdict
from tidegate.health.lua.interpreter import LuaInterpreter
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.times import Ms

ANSWERS = Path(__file__).parents[2] / "data" / "health" / "lua.jsonl"


class Answer(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""


class RecordedAnswer(msgspec.Struct, frozen=True):
    """A case, and Argo CD's answer: none, one that is an error, or no answer but a refusal."""

    name: str
    data: dict[str, str]
    answer: Answer | None
    error: str = ""
    refusal: str = ""


class Judged(msgspec.Struct, frozen=True):
    """A case and what we make of it; no rules where we refuse the settings."""

    theirs: RecordedAnswer
    rules: LuaRules | None
    ours: Verdict | None


@cache
def judged() -> tuple[Judged, ...]:
    machine = LuaInterpreter()
    return tuple(_judge(machine, line) for line in ANSWERS.read_bytes().splitlines())


def _judge(machine: LuaInterpreter, line: bytes) -> Judged:
    document = msgspec.json.decode(line, type=RecordedAnswer)
    body: dict[str, Json] = msgspec.json.decode(line)["body"]
    try:
        rules = read_lua_rules(msgspec.json.encode(document.data), "argocd-cm.yaml")
    except ExceptionGroup:
        return Judged(document, None, None)
    request = rules.make_request(body, Ms(0))
    if request is None:
        return Judged(document, rules, judge(body))
    return Judged(document, rules, read_lua_verdict(machine.answer(request.argument), body))


def as_answer(verdict: Verdict | None, *, with_message: bool) -> Answer | None:
    """A verdict in the form of Argo CD, whose messages may be empty."""
    if verdict is None or verdict.reason == "NoStatus":
        return None if verdict is None else Answer()
    return Answer(verdict.health.value, verdict.message if with_message else "")


def test_settings_that_argo_cd_refuses_are_refused() -> None:
    differing = [
        item.theirs for item in judged() if (item.rules is None) != bool(item.theirs.refusal)
    ]

    assert differing == []


def test_a_script_that_fails_in_argo_cd_fails_here() -> None:
    differing = [
        (item.theirs, item.ours)
        for item in judged()
        if item.rules is not None
        if (item.ours is not None and item.ours.reason == "LuaError") != bool(item.theirs.error)
    ]

    assert differing == []


def test_every_other_script_has_the_result_of_argo_cd(wording: RecordedWording) -> None:
    differing = []
    our_messages = set()
    for item in judged():
        if item.rules is None or item.theirs.error:
            continue
        theirs = item.theirs.answer
        message = sanitize(theirs.message) if theirs else ""
        expected = theirs and Answer(theirs.status, message)
        if as_answer(item.ours, with_message=bool(message)) != expected:
            differing.append((item.theirs, item.ours))
        elif item.ours is not None and not message:
            our_messages.add(item.ours.message)

    assert differing == []
    wording(sorted(our_messages))


def test_the_answers_cover_every_state_and_every_way_to_fail() -> None:
    states = {item.theirs.answer.status for item in judged() if item.theirs.answer is not None}

    assert states == {"", *Health}
    assert sum(bool(item.theirs.error) for item in judged()) >= 15
    assert sum(bool(item.theirs.refusal) for item in judged()) >= 8
    assert len({item.theirs.name for item in judged()}) >= 110
