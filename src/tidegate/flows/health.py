"""How objects in files are, and which rule says so."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path

import msgspec

from tidegate.documents import Document, read
from tidegate.errors import DocumentError, OperatorsError, Place
from tidegate.files import bounded, read_whole
from tidegate.flows.cel import cel_workers
from tidegate.flows.config import config_at
from tidegate.flows.lua import lua_workers
from tidegate.flows.scripting import ScriptWorkers
from tidegate.health.argo import builtin_rows as argo_rows
from tidegate.health.argo import judge as judge_as_argo
from tidegate.health.cel import NO_EXPRESSIONS, CelRules, read_cel_verdict
from tidegate.health.cel.machine import find_cel
from tidegate.health.judge import ARGO, KSTATUS, Judge
from tidegate.health.lua import NO_RULES, LuaRules, Script, read_lua_rules, read_verdict
from tidegate.knowledge.reader import builtin
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import part, text
from tidegate.model.verdict import Verdict

STDIN, ANYTHING = "-", "*"
NANOSECONDS = 1_000_000


class JudgedBy(StrEnum):
    """Who judged: Argo CD's own checks, a row, kstatus, or what the user has: Lua or CEL."""

    ARGO = "argo"
    ROW = "row"
    LUA = "lua"
    CEL = "cel"
    KSTATUS = "kstatus"


class FileVerdict(msgspec.Struct, frozen=True):
    """One object: where it stands, its verdict, and the rule it was judged by.

    `script` is the place of the user's script, where one judged.
    """

    ref: Ref
    where: str
    verdict: Verdict
    rule: JudgedBy
    script: str = ""


class FileJudge(msgspec.Struct, frozen=True):
    """All rules: those of one dialect, and the user's own with the workers that run them.

    `expressions` are those of the repository that each file lies in, by its name.
    """

    judge: Judge
    dialect: str
    scripts: LuaRules
    lua: ScriptWorkers | None
    now: Ms
    expressions: Mapping[str, CelRules]
    cel: ScriptWorkers | None

    async def hear(self, document: Document, ref: Ref) -> FileVerdict:
        """Expressions first; then Argo CD's order: scripts before everything but a deletion."""
        body, where = document.body, str(document.place)
        rules = self.expressions.get(document.place.name, NO_EXPRESSIONS)
        asked = rules.request(body)
        if asked is not None and self.cel is not None:
            said = read_cel_verdict(await self.cel.ask(asked.argument), body)
            found = rules.lookup(ref.kind)
            return FileVerdict(
                ref, where, said, JudgedBy.CEL, _spot(found.where if found else None)
            )
        request = self.scripts.request(body, self.now)
        if request is not None and self.lua is not None:
            verdict = read_verdict(await self.lua.ask(request.argument), body)
            script = self.scripts.script_for(body)
            spot = _spot(script.where if script is not None else None)
            return FileVerdict(ref, where, verdict, JudgedBy.LUA, spot)
        verdict = self.judge.judge(body, self.now, rules=self.dialect)
        return FileVerdict(ref, where, verdict, self._rule_of(body, ref.kind))

    def _rule_of(self, body: dict[str, Json], kind: Kind) -> JudgedBy:
        if self.dialect == KSTATUS:
            return JudgedBy.KSTATUS
        verdict = judge_as_argo(body)
        if verdict is not None and verdict.checked:
            is_leaving = verdict.reason == "PendingDeletion"
            has_row = argo_rows().find(kind.group, kind.name) is not None
            return JudgedBy.ROW if has_row and not is_leaving else JudgedBy.ARGO
        row = self.judge.known.row_of(kind)
        return JudgedBy.ROW if row is not None and row.ready_when else JudgedBy.KSTATUS


async def judge_files(
    files: Sequence[str],
    *,
    health_rules: Path | None = None,
    script: Path | None = None,
    open_libs: bool = False,
    dialect: str = ARGO,
) -> list[FileVerdict]:
    """Every object of every file, in their order; `-` is standard input.

    `script` judges all of them; it may use all of Lua's libraries only where `open_libs` says so.
    """
    documents = [document for name in files for document in _read(name)]
    if not documents:
        problem = "there is no object to judge"
        hint = "name files with objects as they live, from `kubectl get -o yaml`"
        raise DocumentError("documents.empty", problem, where=Place(files[0]), hint=hint)
    scripts = NO_RULES
    if health_rules is not None:
        scripts = read_lua_rules(content_of(str(health_rules)), str(health_rules))
    if script is not None:
        text = content_of(str(script)).decode("utf-8", "replace")
        scripts = LuaRules.of([(ANYTHING, Script(text, open_libs, Place(str(script), 1)))])
    expressions = {_shown(name): _expressions_near(name) for name in files}
    if any(one.known for one in expressions.values()) and not find_cel():
        problem = "the expressions of `tidegate.yaml` cannot be used: CEL is not installed"
        raise OperatorsError("health.cel.missing", problem, hint="install `tidegate[cel]`")
    async with AsyncExitStack() as stack:
        lua = await stack.enter_async_context(lua_workers()) if scripts.named else None
        cel = await stack.enter_async_context(cel_workers())
        bench = FileJudge(
            Judge.of(builtin().rows), dialect, scripts, lua, present(), expressions, cel
        )
        return await _hear_all(bench, documents)


def _expressions_near(name: str) -> CelRules:
    """Those of the repository that a file lies in; of standard input, of the one we are in."""
    return CelRules.of(config_at(Path.cwd() if name == STDIN else Path(name)).health)


def _spot(place: Place | None) -> str:
    return f"{place.name}:{place.line}" if place else ""


async def _hear_all(bench: FileJudge, documents: Iterable[Document]) -> list[FileVerdict]:
    named = [(one, _ref_of(one)) for one in documents]
    async with asyncio.TaskGroup() as group:
        hearings = [
            group.create_task(bench.hear(one, ref), name=f"judge {ref}") for one, ref in named
        ]
    return [hearing.result() for hearing in hearings]


def _read(name: str) -> tuple[Document, ...]:
    return read(_standard_input() if name == STDIN else content_of(name), _shown(name))


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else name


def _standard_input() -> bytes:
    try:
        return bounded(sys.stdin.buffer)
    except OSError as error:
        problem = f"standard input cannot be read: {error.strerror}"
        raise DocumentError("documents.file", problem, where=Place("standard input")) from None


def content_of(name: str) -> bytes:
    try:
        return read_whole(name)
    except OSError as error:
        problem = f"this file cannot be read: {error.strerror}"
        raise DocumentError("documents.file", problem, where=Place(name)) from None


def _ref_of(document: Document) -> Ref:
    body = document.body
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    name = part(body, "metadata", "name")
    if not kind.name or not kind.version or not isinstance(name, str):
        problem = "this is not an object: it needs apiVersion, kind and metadata.name"
        raise DocumentError("documents.incomplete", problem, where=document.place)
    return Ref(kind, text(body, "metadata", "namespace"), name)


def present() -> Ms:
    """Now, by the clock of the file system: a verb without a world has no other."""
    with tempfile.TemporaryFile() as file:
        return Ms(os.fstat(file.fileno()).st_mtime_ns // NANOSECONDS)
