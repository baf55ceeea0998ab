"""Scripts of our own: what people write, and what a runtime may get wrong.

None asks for the time, for an address or for the order of a table: the answers must stay.
"""

from __future__ import annotations

APPLICATION = """\
local hs = {}
hs.status = "Progressing"
hs.message = ""
if obj.status ~= nil and obj.status.health ~= nil then
  hs.status = obj.status.health.status
  if obj.status.health.message ~= nil then hs.message = obj.status.health.message end
end
return hs
"""
"""The well-known rule that makes Applications of Applications wait for each other."""

CONDITIONS = """\
local hs = { status = "Progressing", message = "Waiting for the controller" }
if obj.status ~= nil and obj.status.conditions ~= nil then
  for i, condition in ipairs(obj.status.conditions) do
    if condition.type == "Ready" then
      hs.status = condition.status == "True" and "Healthy" or "Degraded"
      hs.message = condition.message
      return hs
    end
  end
end
return hs
"""

OBSERVED = """\
if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "generation " .. obj.metadata.generation .. " is new" }
end
return { status = "Healthy" }
"""

COUNTING = """\
local ready, all = 0, 0
for _, condition in pairs((obj.status or {}).conditions or {}) do
  all = all + 1
  if condition.status ~= "True" then goto continue end
  ready = ready + 1
  ::continue::
end
return { status = ready == all and "Healthy" or "Progressing", message = ready .. " of " .. all }
"""

CLOSED = {
    "application": APPLICATION,
    "conditions": CONDITIONS,
    "observed": OBSERVED,
    "counting": COUNTING,
    "always": 'return {status = "Healthy", message = "as it is"}',
    "suspended": 'return {status = "Suspended"}',
    "missing": 'return {status = "Missing"}',
    "unknown": 'return {status = "Unknown"}',
    "invalid": 'return {status = "Fine"}',
    "lower case": 'return {status = "healthy"}',
    "no status": 'return {message = "nothing else"}',
    "empty status": 'return {status = ""}',
    "empty": "return {}",
    "nothing": "return",
    "nil": "return nil",
    "no return": 'hs = {status = "Healthy"}',
    "text": 'return "Healthy"',
    "number": "return 5",
    "boolean": "return true",
    "function": "return print",
    "list": 'return {"Healthy"}',
    "two values": 'return {status = "Healthy"}, {status = "Degraded", message = "second"}',
    "message is a number": 'return {status = "Healthy", message = 5}',
    "message is a table": 'return {status = "Healthy", message = {}}',
    "status is a number": "return {status = 5}",
    "other case": 'return {Status = "Healthy", MESSAGE = "loud"}',
    "two cases": 'return {Status = "Degraded", status = "Healthy"}',
    "more fields": 'return {status = "Healthy", since = {a = 1, b = {2, 3}}}',
    "holds a function": 'return {status = "Healthy", call = print}',
    "holds itself": 'local t = {status = "Healthy"} t.me = t return t',
    "holds one twice": 'local u = {1} return {status = "Healthy", a = u, b = u}',
    "holds a sparse list": 'return {status = "Healthy", list = {[1] = 1, [3] = 3}}',
    "holds a mixed table": 'return {status = "Healthy", list = {1, 2, x = 3}}',
    "mixed": 'return {"x", status = "Healthy"}',
    "boolean key": 'return {[true] = "x"}',
    "not a number": 'return {status = "Healthy", share = 0/0}',
    "inherited": 'return setmetatable({}, {__index = {status = "Healthy"}})',
    "protected": 'return setmetatable({status = "Healthy"}, {__metatable = "no"})',
    "error": 'error("boom")',
    "error without place": 'error("boom", 0)',
    "error with a table": "error({code = 1})",
    "index of nil": "return {status = obj.never.there}",
    "call of nil": "return never()",
    "syntax": "return {status = ",
    "closed string library": 'return {status = "Healthy", message = ("x"):rep(3)}',
    "closed libraries": """\
return {status = "Healthy", message = type(string) .. type(math) .. type(os) .. type(io)
  .. type(debug) .. type(coroutine) .. type(table) .. type(package) .. type(require)}
""",
    "os": 'local os = require("os") return {status = "Healthy", message = type(os.time)}',
    "no execute": 'return {status = "Healthy", message = type(require("os").execute)}',
    "date": """\
local os = require("os")
return {status = "Healthy", message = os.date("!%Y-%m-%dT%H:%M:%SZ %j", 951782400)}
""",
    "every date": """\
local shape = "%a %A %b %B %c %d %F %H %I %m %M %p %P %S %w %x %X %y %Y %z %Z %q %% %"
return {status = "Healthy", message = require("os").date("!" .. shape, 1709214307)}
""",
    "date table": """\
local t = require("os").date("*t", 1709214307)
return {status = "Healthy", message = t.year .. "-" .. t.month .. "-" .. t.day .. " " .. t.hour
  .. ":" .. t.min .. ":" .. t.sec .. " " .. t.wday .. " " .. t.yday .. " " .. tostring(t.isdst)}
""",
    "time": """\
local os = require("os")
local leap = os.time({year = 2024, month = 2, day = 29, hour = 13, min = 45, sec = 7})
return {status = "Healthy", message = leap .. " " .. os.time({year = 2024, month = 14, day = 0})}
""",
    "no module": 'return require("string")',
    "version": 'return {status = "Healthy", message = _VERSION}',
    "parameters": 'return {status = "Healthy", message = type(actionParams) .. #actionParams}',
    "catches": """\
local fine, problem = pcall(function() error("inner", 0) end)
return {status = fine and "Healthy" or "Degraded", message = problem}
""",
    "catches with a handler": """\
local fine, said = xpcall(function() error("inner", 0) end, function(e) return "<" .. e .. ">" end)
return {status = "Healthy", message = tostring(fine) .. said}
""",
    "compiles": 'return {status = "Healthy", message = loadstring("return 3 + 4")() .. ""}',
    "compiles nothing": 'return {status = "Healthy", message = type(loadstring("return ("))}',
    "load wants a function": 'return {status = "Healthy", message = type(load("return 1"))}',
    "global environment": 'x = 5 return {status = "Healthy", message = _G.x .. rawget(_G, "x")}',
    "table library": """\
local t = {3, 1, 2}
table.sort(t)
table.insert(t, 4)
table.remove(t, 1)
return {status = "Healthy", message = table.concat(t, ",") .. table.getn(t) .. table.maxn(t)}
""",
    "varargs": """\
local function count(...) return select("#", ...) .. tostring((select(2, ...))) end
return {status = "Healthy", message = count(nil, 2, nil) .. unpack({"a", "b"})}
""",
    "numbers": """\
return {status = "Healthy", message = 7 / 2 .. " " .. 7 % 3 .. " " .. -7 % 3 .. " " .. 2 ^ 10 .. " "
  .. 1e3 .. " " .. tonumber("0x10") .. " " .. tostring(tonumber("x")) .. " " .. 10 / 5}
""",
    "reads all": """\
local s = obj.spec or {}
return {status = "Healthy", message = tostring(s.number) .. tostring(s.share) .. tostring(s.flag)
  .. tostring(s.text) .. tostring(s.nothing) .. #(s.list or {}) .. type(s.map) .. type(s.empty)}
""",
}

OPEN = {
    "strings": """\
local s = "Phase: Ready (2/3)"
local ready, all = string.match(s, "%((%d+)/(%d+)%)")
return {status = ready == all and "Healthy" or "Progressing", message = s:sub(1, 5):upper()
  .. s:gsub("%s", "") .. s:len() .. s:find("Ready", 1, true)
  .. ("%05.1f|%s|%d|%q"):format(2.25, "x", 7, "y")}
""",
    "iterates matches": """\
local found = {}
for word in string.gmatch("one two  three", "%a+") do table.insert(found, word:reverse()) end
return {status = "Healthy", message = table.concat(found, "-") .. ("ab"):rep(2) .. ("A"):byte()}
""",
    "unicode": 'return {status = "Healthy", message = "grün " .. #"ü" .. ("x"):upper()}',
    "not unicode": 'return {status = "Healthy", message = ("ü"):sub(1, 1)}',
    "math": """\
return {status = "Healthy", message = math.floor(2.7) .. math.ceil(2.1) .. math.max(1, 5, 3)
  .. math.abs(-4) .. math.fmod(7, 3)}
""",
    "coroutines": """\
local steps = coroutine.wrap(function() coroutine.yield("a") coroutine.yield("b") end)
local co = coroutine.create(function() error("inner", 0) end)
local fine, problem = coroutine.resume(co)
return {status = "Healthy", message = steps() .. steps() .. tostring(fine) .. problem
  .. coroutine.status(co)}
""",
    "string metatable": """\
local is_library = getmetatable("").__index == string
return {status = "Healthy", message = tostring(is_library)}
""",
    "changed strings": """\
string.upper = function() return "mine" end
return {status = "Healthy", message = ("x"):upper()}
""",
    "no module still": 'return require("string")',
    "open os": """\
return {status = "Healthy", message = os.date("!%F", 0) .. type(os.time()) .. os.difftime(5, 3)}
""",
}
