"""Tests of health scripts in directories as in Argo CD: a script, bodies and expected results.

    <group>/<kind>/health.lua
    <group>/<kind>/health_test.yaml     tests: [{inputPath, healthStatus: {status, message}}]
    <group>/<kind>/testdata/…

A script may use all libraries and is run whatever the state of the object, as in the tests of
Argo CD.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.documents import Document, read_documents
from tidegate.errors import DocumentError, Location, sanitize
from tidegate.flows.health import current_time, read_content
from tidegate.flows.lua import lua_workers
from tidegate.flows.scripting import ScriptWorkers
from tidegate.health.lua import LuaRules, Script
from tidegate.health.lua.exchange import Broke, Question, Returned, read_answer, write_question
from tidegate.model.moment import SECOND
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import get_mapping, get_mappings, get_text

SCRIPT_FILE, TESTS_FILE = "health.lua", "health_test.yaml"
StatusAndMessage = tuple[str, str]
"""A status and a message."""


class ScriptTest(msgspec.Struct, frozen=True):
    """One tested body, the expected result and the actual result of its script."""

    body: str
    wanted: StatusAndMessage
    said: StatusAndMessage
    problem: str = ""

    @property
    def passed(self) -> bool:
        return self.wanted == self.said and not self.problem


class _HealthTest(NamedTuple):
    """A test as written: the body, the script of its directory and the expected result."""

    body: Path
    script: Script
    expected: StatusAndMessage


async def run_tests(folder: Path) -> list[ScriptTest]:
    """Run every test below a directory, in the order of their names."""
    tests = _find_tests(folder)
    # A body is for the script of its own kind, wherever the test stands, as in Argo CD.
    rules = LuaRules.of((_rule_key(test), test.script) for test in tests)
    async with lua_workers() as lua:
        return [await _run_test(lua, test, rules) for test in tests]


def _find_tests(folder: Path) -> list[_HealthTest]:
    files = sorted(folder.rglob(TESTS_FILE))
    if not files:
        problem = f"there is no {TESTS_FILE} in it"
        hint = f"a folder holds {SCRIPT_FILE}, {TESTS_FILE} and the bodies that it names"
        raise DocumentError("documents.empty", problem, location=Location(str(folder)), hint=hint)
    return [test for file in files for test in _read_tests(file.resolve(), shown=file)]


def _rule_key(test: _HealthTest) -> str:
    """Return `group/kind` from the names of the directories; a leading `_` stands for any text."""
    *_, group, kind = Path(test.script.where.name if test.script.where else "").parent.parts
    return "/".join("*" + name[1:] if name.startswith("_") else name for name in (group, kind))


def _read_tests(file: Path, *, shown: Path) -> Iterator[_HealthTest]:
    script_path = file.with_name(SCRIPT_FILE)
    content = read_content(str(script_path)).decode(errors="replace")
    script = Script(content, open_libs=True, where=Location(str(script_path)))
    for document in read_documents(read_content(str(shown)), str(shown)):
        for test in get_mappings(document.body, "tests"):
            fields = _with_lower_keys(test)
            path, status = get_text(fields, "inputpath"), get_mapping(fields, "healthstatus")
            if not path:
                raise _incomplete_error(document)
            expected = get_text(status, "status"), get_text(status, "message")
            yield _HealthTest(shown.parent / path, script, expected)


def _with_lower_keys(test: dict[str, Json]) -> dict[str, Json]:
    """Return the test with keys in lower case, since Go decodes keys in any case."""
    return {key.lower(): value for key, value in test.items()}


def _incomplete_error(document: Document) -> DocumentError:
    problem = "a test needs inputPath: the body that it is about"
    return DocumentError("documents.incomplete", problem, location=document.location)


async def _run_test(lua: ScriptWorkers, test: _HealthTest, rules: LuaRules) -> ScriptTest:
    path, expected = str(test.body), test.expected
    documents = read_documents(read_content(path), path)
    if not documents:
        raise DocumentError("documents.empty", "there is no object in it", location=Location(path))
    body = documents[0].body
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    script = rules.lookup(kind.group, kind.name) or test.script
    encoded = msgspec.json.encode(body)
    question = Question(script.text, open_libs=True, now=current_time() // SECOND, body=encoded)
    match read_answer(await lua.request(write_question(question))):
        case Returned(status, message):
            return ScriptTest(path, expected, (status, message))
        case Broke(problem):
            return ScriptTest(path, expected, ("", ""), sanitize(problem))
        case _:
            return ScriptTest(path, expected, ("", ""))
