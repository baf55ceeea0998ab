"""Health of objects in files, with the rule that decided it; and tests of health scripts.

The tests are in directories as in Argo CD: a script, bodies and expected results.

    <group>/<kind>/health.lua
    <group>/<kind>/health_test.yaml     tests: [{inputPath, healthStatus: {status, message}}]
    <group>/<kind>/testdata/…

A tested script may use all libraries and is run whatever the state of the object, as in the
tests of Argo CD.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.documents import Document, read_documents
from tidegate.errors import DocumentError, KnowledgeError, Location, sanitize
from tidegate.files import read_bounded, read_regular_file
from tidegate.health.argo import builtin_rows as argo_rows
from tidegate.health.argo import judge as judge_as_argo
from tidegate.health.cel import NO_EXPRESSIONS, CelRules, read_cel_verdict
from tidegate.health.cel.interpreter import is_cel_installed
from tidegate.health.judge import ARGO, KSTATUS, Judge
from tidegate.health.lua import NO_LUA_RULES, LuaRules, LuaScript, read_lua_rules, read_lua_verdict
from tidegate.health.lua.messages import (
    LuaRequest,
    ScriptFailed,
    ScriptResult,
    decode_lua_response,
    encode_lua_request,
)
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.json_fields import (
    get_mapping,
    get_mappings,
    get_text,
    get_value,
    object_kind,
)
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.times import SECOND, Ms
from tidegate.workers.cel import cel_workers
from tidegate.workers.lua import lua_workers
from tidegate.workers.scripts import ScriptWorkers
from tidegate.workspace.config import load_config

STDIN, ANY_KIND = "-", "*"
NANOSECONDS_PER_MS = 1_000_000


class VerdictSource(StrEnum):
    """Source of a verdict: an Argo CD check, a catalog row, kstatus, or the user's Lua or CEL."""

    ARGO = "argo"
    ROW = "row"
    LUA = "lua"
    CEL = "cel"
    KSTATUS = "kstatus"


class FileVerdict(msgspec.Struct, frozen=True):
    """Verdict of one object in a file."""

    ref: Ref
    location: str
    """Location of the object."""
    verdict: Verdict
    rule: VerdictSource
    """The rule that decided the verdict."""
    script: str = ""
    """Location of the user's script, if it decided."""


class FileJudge(msgspec.Struct, frozen=True):
    """All health rules: those of one dialect, and the user's scripts with their workers."""

    judge: Judge
    dialect: str
    scripts: LuaRules
    lua: ScriptWorkers | None
    now: Ms
    expressions: Mapping[str, CelRules]
    """CEL expressions of the repository of each file, by file name."""
    cel: ScriptWorkers | None

    async def evaluate(self, document: Document, ref: Ref) -> FileVerdict:
        """Evaluate an object: CEL expressions first, then scripts and built-in checks like Argo CD.

        A script wins over everything except a pending deletion.
        """
        body, location = document.body, str(document.location)
        rules = self.expressions.get(document.location.name, NO_EXPRESSIONS)
        cel_request = rules.make_request(body)
        if cel_request is not None and self.cel is not None:
            cel_verdict = read_cel_verdict(await self.cel.request(cel_request.argument), body)
            expression = rules.find(ref.kind)
            return FileVerdict(
                ref,
                location,
                cel_verdict,
                VerdictSource.CEL,
                _location_text(expression.location if expression else None),
            )
        request = self.scripts.make_request(body, self.now)
        if request is not None and self.lua is not None:
            verdict = read_lua_verdict(await self.lua.request(request.argument), body)
            script = self.scripts.find_script(body)
            script_location = _location_text(script.location if script is not None else None)
            return FileVerdict(ref, location, verdict, VerdictSource.LUA, script_location)
        verdict = self.judge.judge(body, self.now, rules=self.dialect)
        return FileVerdict(ref, location, verdict, self._verdict_source(body, ref.kind))

    def _verdict_source(self, body: dict[str, Json], kind: Kind) -> VerdictSource:
        if self.dialect == KSTATUS:
            return VerdictSource.KSTATUS
        verdict = judge_as_argo(body)
        if verdict is not None and verdict.is_checked:
            is_deleting = verdict.reason == "PendingDeletion"
            has_row = argo_rows().find(kind.group, kind.name) is not None
            return VerdictSource.ROW if has_row and not is_deleting else VerdictSource.ARGO
        row = self.judge.catalog.find_row(kind)
        return VerdictSource.ROW if row is not None and row.ready_when else VerdictSource.KSTATUS


async def judge_files(
    files: Sequence[str],
    *,
    health_rules: Path | None = None,
    script: Path | None = None,
    open_libs: bool = False,
    dialect: str = ARGO,
) -> list[FileVerdict]:
    """Evaluate the health of every object of every file, in order; `-` is standard input.

    `script` evaluates all of them; with `open_libs` it may use all Lua libraries. Raises
    DocumentError if there is no object.
    """
    documents = [document for name in files for document in _read_documents(name)]
    if not documents:
        problem = "no objects found"
        hint = "set files with live objects, such as the output of `kubectl get -o yaml`"
        raise DocumentError("documents.empty", problem, location=Location(files[0]), hint=hint)
    scripts = NO_LUA_RULES
    if health_rules is not None:
        scripts = read_lua_rules(read_content(str(health_rules)), str(health_rules))
    if script is not None:
        content = read_content(str(script)).decode("utf-8", "replace")
        scripts = LuaRules.from_scripts(
            [(ANY_KIND, LuaScript(content, open_libs, Location(str(script), 1)))]
        )
    expressions = {_display_name(name): _repository_expressions(name) for name in files}
    if any(cel_rules.expressions for cel_rules in expressions.values()) and not is_cel_installed():
        problem = "cannot evaluate the expressions of `tidegate.yaml`: CEL is not installed"
        raise KnowledgeError("health.cel.missing", problem, hint="install `tidegate[cel]`")
    async with AsyncExitStack() as stack:
        lua = await stack.enter_async_context(lua_workers()) if scripts.named else None
        cel = await stack.enter_async_context(cel_workers())
        file_judge = FileJudge(
            Judge.from_rows(load_builtin_knowledge().rows),
            dialect,
            scripts,
            lua,
            current_time(),
            expressions,
            cel,
        )
        return await _evaluate_all(file_judge, documents)


def _repository_expressions(name: str) -> CelRules:
    """Return the expressions of the repository of a file, or of the current one for stdin."""
    return CelRules.from_expressions(
        load_config(Path.cwd() if name == STDIN else Path(name)).health
    )


def _location_text(location: Location | None) -> str:
    return f"{location.name}:{location.line}" if location else ""


async def _evaluate_all(file_judge: FileJudge, documents: Iterable[Document]) -> list[FileVerdict]:
    documents_with_refs = [(document, _object_ref(document)) for document in documents]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(file_judge.evaluate(document, ref), name=f"judge {ref}")
            for document, ref in documents_with_refs
        ]
    return [task.result() for task in tasks]


def _read_documents(name: str) -> tuple[Document, ...]:
    return read_documents(
        _read_stdin() if name == STDIN else read_content(name), _display_name(name)
    )


def _display_name(name: str) -> str:
    return "standard input" if name == STDIN else name


def _read_stdin() -> bytes:
    try:
        return read_bounded(sys.stdin.buffer)
    except OSError as error:
        problem = f"cannot read standard input: {error.strerror}"
        raise DocumentError(
            "documents.file", problem, location=Location("standard input")
        ) from None


def read_content(name: str) -> bytes:
    try:
        return read_regular_file(name)
    except OSError as error:
        problem = f"cannot read the file: {error.strerror}"
        raise DocumentError("documents.file", problem, location=Location(name)) from None


def _object_ref(document: Document) -> Ref:
    body = document.body
    kind = object_kind(body)
    name = get_value(body, "metadata", "name")
    if not kind.name or not kind.version or not isinstance(name, str):
        problem = "not a Kubernetes object: apiVersion, kind or metadata.name is missing"
        raise DocumentError("documents.incomplete", problem, location=document.location)
    return Ref(kind, get_text(body, "metadata", "namespace"), name)


def current_time() -> Ms:
    """Return the current time of this machine: there is no World with a clock."""
    with tempfile.TemporaryFile() as file:
        return Ms(os.fstat(file.fileno()).st_mtime_ns // NANOSECONDS_PER_MS)


SCRIPT_FILE, TESTS_FILE = "health.lua", "health_test.yaml"
StatusAndMessage = tuple[str, str]
"""A status and a message."""


class ScriptTest(msgspec.Struct, frozen=True):
    """One tested body, the expected result and the actual result of its script."""

    body: str
    expected: StatusAndMessage
    actual: StatusAndMessage
    problem: str = ""

    @property
    def passed(self) -> bool:
        return self.expected == self.actual and not self.problem


class _HealthTest(NamedTuple):
    """A test as written: the body, the script of its directory and the expected result."""

    body: Path
    script: LuaScript
    expected: StatusAndMessage


async def run_tests(folder: Path) -> list[ScriptTest]:
    """Run every test below a directory, in the order of their names."""
    tests = _find_tests(folder)
    # The script of the object's kind is used, wherever the test is, like in Argo CD.
    rules = LuaRules.from_scripts((_rule_key(test), test.script) for test in tests)
    async with lua_workers() as lua:
        return [await _run_test(lua, test, rules) for test in tests]


def _find_tests(folder: Path) -> list[_HealthTest]:
    files = sorted(folder.rglob(TESTS_FILE))
    if not files:
        problem = f"the directory contains no {TESTS_FILE}"
        hint = f"create a directory with {SCRIPT_FILE}, {TESTS_FILE} and the objects to test"
        raise DocumentError("documents.empty", problem, location=Location(str(folder)), hint=hint)
    return [test for file in files for test in _read_tests(file.resolve(), shown=file)]


def _rule_key(test: _HealthTest) -> str:
    """Return `group/kind` from the names of the directories; a leading `_` means any text."""
    *_, group, kind = Path(test.script.location.name if test.script.location else "").parent.parts
    return "/".join("*" + name[1:] if name.startswith("_") else name for name in (group, kind))


def _read_tests(file: Path, *, shown: Path) -> Iterator[_HealthTest]:
    script_path = file.with_name(SCRIPT_FILE)
    content = read_content(str(script_path)).decode(errors="replace")
    script = LuaScript(content, open_libs=True, location=Location(str(script_path)))
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
    problem = "the test has no inputPath: set the file with the object to test"
    return DocumentError("documents.incomplete", problem, location=document.location)


async def _run_test(lua: ScriptWorkers, test: _HealthTest, rules: LuaRules) -> ScriptTest:
    path, expected = str(test.body), test.expected
    documents = read_documents(read_content(path), path)
    if not documents:
        problem = "the file contains no object"
        raise DocumentError("documents.empty", problem, location=Location(path))
    body = documents[0].body
    kind = object_kind(body)
    script = rules.find(kind.group, kind.name) or test.script
    encoded = msgspec.json.encode(body)
    question = LuaRequest(script.text, open_libs=True, now=current_time() // SECOND, body=encoded)
    match decode_lua_response(await lua.request(encode_lua_request(question))):
        case ScriptResult(status, message):
            return ScriptTest(path, expected, (status, message))
        case ScriptFailed(problem):
            return ScriptTest(path, expected, ("", ""), sanitize(problem))
        case _:
            return ScriptTest(path, expected, ("", ""))
