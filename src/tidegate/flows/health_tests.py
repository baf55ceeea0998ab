"""Tests of health scripts, in folders as Argo CD has them: a script, bodies, what it should say.

    <group>/<kind>/health.lua
    <group>/<kind>/health_test.yaml     tests: [{inputPath, healthStatus: {status, message}}]
    <group>/<kind>/testdata/…

A script sees all libraries and is asked whatever happens to the object, as in Argo CD's own tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.documents import Document, read
from tidegate.errors import DocumentError, Place, foreign
from tidegate.flows.health import content_of, present
from tidegate.flows.lua import LuaWorkers, lua_workers
from tidegate.health.lua import LuaRules, Script
from tidegate.health.lua.exchange import Broke, Question, Returned, read_answer, write_question
from tidegate.model.moment import SECOND
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import mapping, mappings, text

SCRIPT, TESTS = "health.lua", "health_test.yaml"
Said = tuple[str, str]


class ScriptTest(msgspec.Struct, frozen=True):
    """One body, what its script should say of it, and what it says: a status and a message."""

    body: str
    wanted: Said
    said: Said
    problem: str = ""

    @property
    def passed(self) -> bool:
        return self.wanted == self.said and not self.problem


class _HealthCase(NamedTuple):
    """A test as it is written: the body, the script of its folder, what it should say."""

    body: Path
    script: Script
    wanted: Said


async def run_tests(folder: Path) -> list[ScriptTest]:
    """Every test below a folder, in the order of their names."""
    asked = _tests_below(folder)
    # A body is for the script of its own kind, wherever the test stands, as in Argo CD.
    rules = LuaRules.of((_key_of(one), one.script) for one in asked)
    async with lua_workers() as lua:
        return [await _run(lua, one, rules) for one in asked]


def _tests_below(folder: Path) -> list[_HealthCase]:
    files = sorted(folder.rglob(TESTS))
    if not files:
        problem = f"there is no {TESTS} in it"
        hint = f"a folder holds {SCRIPT}, {TESTS} and the bodies that it names"
        raise DocumentError("documents.empty", problem, where=Place(str(folder)), hint=hint)
    return [one for file in files for one in _tests_of(file.resolve(), shown=file)]


def _key_of(asked: _HealthCase) -> str:
    """`group/kind`, from the names of the folders; `_` stands for any text."""
    *_, group, kind = Path(asked.script.where.name if asked.script.where else "").parent.parts
    return "/".join("*" + name[1:] if name.startswith("_") else name for name in (group, kind))


def _tests_of(file: Path, *, shown: Path) -> Iterator[_HealthCase]:
    place = file.with_name(SCRIPT)
    content = content_of(str(place)).decode(errors="replace")
    script = Script(content, open_libs=True, where=Place(str(place)))
    for document in read(content_of(str(shown)), str(shown)):
        for test in mappings(document.body, "tests"):
            told = _any_case(test)
            path, status = text(told, "inputpath"), mapping(told, "healthstatus")
            if not path:
                raise _incomplete(document)
            wanted = text(status, "status"), text(status, "message")
            yield _HealthCase(shown.parent / path, script, wanted)


def _any_case(test: dict[str, Json]) -> dict[str, Json]:
    """Go takes keys in small and in capital letters."""
    return {key.lower(): value for key, value in test.items()}


def _incomplete(document: Document) -> DocumentError:
    problem = "a test needs inputPath: the body that it is about"
    return DocumentError("documents.incomplete", problem, where=document.place)


async def _run(lua: LuaWorkers, asked: _HealthCase, rules: LuaRules) -> ScriptTest:
    place, wanted = str(asked.body), asked.wanted
    documents = read(content_of(place), place)
    if not documents:
        raise DocumentError("documents.empty", "there is no object in it", where=Place(place))
    body = documents[0].body
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    script = rules.lookup(kind.group, kind.name) or asked.script
    encoded = msgspec.json.encode(body)
    question = Question(script.text, open_libs=True, now=present() // SECOND, body=encoded)
    match read_answer(await lua.ask(write_question(question))):
        case Returned(status, message):
            return ScriptTest(place, wanted, (status, message))
        case Broke(problem):
            return ScriptTest(place, wanted, ("", ""), foreign(problem))
        case _:
            return ScriptTest(place, wanted, ("", ""))
