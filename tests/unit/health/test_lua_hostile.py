"""Hostile scripts: each ends with an error, and does not affect the next one.

Scripts that only the end of the worker can stop are in test_lua_workers.
"""

from __future__ import annotations

import resource

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.health.lua.interpreter import LUA_MODULES, MIB, RESTART_MEMORY, LuaInterpreter
from tidegate.health.lua.messages import LuaRequest, LuaResponse, ScriptFailed, ScriptResult

FINE = 'return {status = "Healthy"}'
OPEN_FINE = """\
return {status = "Healthy", message = ("x"):upper() .. math.max(1, 2) .. #table.concat({1})}
"""
LIMIT = 2_000_000
STEPS = str(LIMIT)
MEMORY = "not enough memory"


@pytest.fixture(scope="module", params=LUA_MODULES)
def machine(request: pytest.FixtureRequest) -> LuaInterpreter:
    return LuaInterpreter(steps=LIMIT, lua=str(request.param))


def ask(machine: LuaInterpreter, script: str, *, open_libs: bool = True) -> LuaResponse:
    body = b'{"apiVersion":"v1","kind":"Thing","status":{"phase":"Ready"}}'
    return machine.evaluate(LuaRequest(script, open_libs, 0, body))


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("while true do end", STEPS),
        ("repeat until false", STEPS),
        ("while true do pcall(function() while true do end end) end", STEPS),
        ("while true do pcall(error) end", STEPS),
        ("local e = function() while true do end end xpcall(error, e)", STEPS),
        ("xpcall(function() while true do end end, function() while true do end end)", STEPS),
        ("while true do coroutine.resume(coroutine.create(function() end)) end", STEPS),
        ("coroutine.wrap(function() while true do end end)()", STEPS),
        ("while true do coroutine.wrap(function() coroutine.yield() end)() end", STEPS),
        ("setmetatable(_G, {__index = function() while true do end end}) return x", STEPS),
        ("tostring(setmetatable({}, {__tostring = function() while true do end end}))", STEPS),
        ("table.sort({1, 2, 3}, function() while true do end end)", STEPS),
        ("string.gsub('x', 'x', function() while true do end end)", STEPS),
        ("loadstring('while true do end')()", STEPS),
        ("local s = 'x' while true do s = s .. s end", MEMORY),
        ("local t = {} while true do t[#t + 1] = {unpack(t, 1, 1000)} end", MEMORY),
        ("local t = {} while true do t[#t + 1] = ('x'):rep(1e5) .. #t end", MEMORY),
        ("string.rep('x', 1e9)", MEMORY),
        ("return {status = ('x'):rep(2 ^ 30)}", MEMORY),
        ("local t = {('x'):rep(1e6)} for i = 1, 1e3 do t[i] = t[1] end table.concat(t)", MEMORY),
        ("local function f() return 1 + f() end return f()", "stack overflow"),
        ("return unpack({}, 1, 1e8)", "too many results"),
        ("local t = {} local u = t for i = 1, 3e4 do u.x = {} u = u.x end return t", "overflow"),
        ("error(42)", "42"),
        ("error(('x'):rep(1e6))", "xxxx"),
        ("return coroutine.create(print)", "expect table output from Lua script, not thread"),
    ],
)  # fmt: skip
def test_a_hostile_script_ends_with_an_error(
    machine: LuaInterpreter, script: str, problem: str
) -> None:
    answer = ask(machine, script)

    assert isinstance(answer, ScriptFailed)
    assert problem in answer.problem
    assert len(answer.problem) <= 4096
    assert ask(machine, OPEN_FINE) == ScriptResult("Healthy", "X21")


@pytest.mark.parametrize(
    "value",
    [
        "{code = 1}",
        "setmetatable({}, {__tostring = function() while true do end end})",
        "print",
        "nil",
    ],
    ids=["table", "endless metamethod", "function", "nil"],
)
def test_an_error_that_is_no_text_is_described(
    machine: LuaInterpreter, value: str, wording: RecordedWording
) -> None:
    answer = ask(machine, f"error({value})")

    assert isinstance(answer, ScriptFailed)
    wording(answer.problem)
    assert ask(machine, OPEN_FINE) == ScriptResult("Healthy", "X21")


@pytest.mark.parametrize("script", ["while true do end", "while true do pcall(error) end"])
def test_a_script_with_few_libraries_also_ends(machine: LuaInterpreter, script: str) -> None:
    assert isinstance(ask(machine, script, open_libs=False), ScriptFailed)
    assert ask(machine, FINE, open_libs=False) == ScriptResult("Healthy", "")


@pytest.mark.parametrize(
    "way",
    [
        "os.execute", "os.exit", "os.getenv", "os.remove", "os.rename", "os.tmpname", "os.clock",
        "io", "debug", "jit", "ffi", "bit", "python", "newproxy", "module", "dofile", "loadfile",
        "getfenv", "setfenv", "gcinfo", "string.dump", "package.loadlib", "package.loaded.os",
        "package.loaded.python", "package.loaded.ffi", "package.loaders[1]", "table.move",
        "getmetatable(obj)", "getmetatable(print)", "getmetatable(_G)", "coroutine.isyieldable",
    ],
)  # fmt: skip
@pytest.mark.parametrize("open_libs", [True, False])
def test_a_script_cannot_leave_its_environment(
    machine: LuaInterpreter, way: str, *, open_libs: bool
) -> None:
    script = f"""\
local fine, found = pcall(function() return {way} end)
return {{status = "Healthy", message = type(fine and found or nil)}}
"""

    assert ask(machine, script, open_libs=open_libs) == ScriptResult("Healthy", "nil")


@pytest.mark.parametrize("name", ["io", "debug", "ffi", "python", "../secret", "table.new"])
def test_other_modules_are_not_found(machine: LuaInterpreter, name: str) -> None:
    answer = ask(machine, f"return require('{name}')")

    assert isinstance(answer, ScriptFailed)
    assert f"module {name} not found" in answer.problem


@pytest.mark.parametrize(
    "script",
    [
        r"return loadstring('\27LJ\2\0')",
        r"return load(coroutine.wrap(function() coroutine.yield('\27LJ\2\0') end))",
    ],
)
def test_bytecode_is_refused(machine: LuaInterpreter, script: str) -> None:
    message = f"""\
local chunk, why = (function() {script} end)()
return {{status = "Healthy", message = tostring(chunk) .. " " .. why}}
"""

    assert ask(machine, message) == ScriptResult(
        "Healthy", "nil attempt to load chunk with wrong mode"
    )


@pytest.mark.parametrize(
    "mischief",
    [
        "string.upper = nil",
        'getmetatable("").__index = nil',
        'getmetatable("").__len = function() error("mine") end',
        "table.concat = nil math.max = nil",
        "package.loaded.table.concat = nil",
        "for name in pairs(_G) do _G[name] = nil end",
        'setmetatable(_G, {__index = function() return "mine" end})',
        "getmetatable = nil type = nil select = nil next = nil pcall = nil error = nil",
        'loadstring("string.upper = nil")()',
        "local held = {} for i = 1, 3e4 do held[i] = {} end",
    ],
)
def test_changes_of_a_script_end_with_it(machine: LuaInterpreter, mischief: str) -> None:
    ask(machine, f'{mischief} return {{status = "Healthy"}}')

    assert ask(machine, OPEN_FINE) == ScriptResult("Healthy", "X21")
    assert isinstance(ask(machine, 'return ("x"):upper()', open_libs=False), ScriptFailed)


def test_an_endless_goto_ends() -> None:
    answer = ask(LuaInterpreter(steps=LIMIT), "::again:: goto again")

    assert isinstance(answer, ScriptFailed)
    assert STEPS in answer.problem


def test_random_numbers_are_the_same_for_every_script(machine: LuaInterpreter) -> None:
    script = """\
local drawn = math.random(1000000)
math.randomseed(7)
return {status = "Healthy", message = "" .. drawn}
"""

    assert ask(machine, script) == ask(machine, script)


def test_a_state_with_much_garbage_is_discarded() -> None:
    machine = LuaInterpreter()

    ask(machine, "local t = {} while true do t[#t + 1] = {} end")

    assert machine._runtime.get_memory_used(total=True) < RESTART_MEMORY


def test_many_hungry_scripts_take_no_more_memory_than_a_few() -> None:
    machine = LuaInterpreter()
    hungry = "local t = {} for i = 1, 2e5 do t[i] = {} end return {status = 'Healthy'}"
    for _ in range(5):
        ask(machine, hungry)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(20):
        ask(machine, hungry)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * MIB // 1024


def test_more_scripts_than_are_kept_are_all_run() -> None:
    machine = LuaInterpreter()

    answers = [
        ask(machine, f'return {{status = "Healthy", message = "{number}"}}')
        for number in (*range(300), *range(300))
    ]

    assert answers == [
        ScriptResult("Healthy", str(number)) for number in (*range(300), *range(300))
    ]


def test_a_long_result_of_a_script_is_cut(machine: LuaInterpreter) -> None:
    answer = ask(machine, 'return {status = "Healthy", message = ("x"):rep(1e6)}')

    assert answer == ScriptResult("Healthy", "x" * 4096)
