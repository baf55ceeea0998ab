-- What a script of a stranger's sees of Lua, and how one is run.
--
-- Every run gets an environment of its own, so that none leaves anything behind for the next. What
-- reaches files, processes, other environments or bytecode is not in it. Everything that is used
-- here is held in locals: an environment cannot change it.

local LIMIT, KEPT, SHOWN = ...

local assert, error, getmetatable, ipairs, next, pairs = assert, error, getmetatable, ipairs, next, pairs
local pcall, rawequal, rawget, rawset, select, setmetatable = pcall, rawequal, rawget, rawset, select, setmetatable
local tonumber, tostring, type, unpack, load, loadstring = tonumber, tostring, type, unpack, load, loadstring
local concat, date, floor, huge, random_seed = table.concat, os.date, math.floor, math.huge, math.randomseed
local find, format, gsub, lower, sub = string.find, string.format, string.gsub, string.lower, string.sub
local sethook, set_metatable, setfenv = debug.sethook, debug.setmetatable, setfenv
local co_create, co_resume = coroutine.create, coroutine.resume
local has_jit = jit ~= nil

if has_jit then -- compiled loops run no hooks, and would never end
  jit.off()
  jit.flush()
end

local function copy(library, names)
  local copied = {}
  for name in names:gmatch("%S+") do copied[name] = library[name] end
  return copied
end

local TABLE = copy(table, "concat getn insert maxn remove sort")
local MATH = copy(math, "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min"
  .. " modf pi pow rad random randomseed sin sinh sqrt tan tanh")
local STRING = copy(string, "byte char find format gmatch gsub len lower match rep reverse sub upper")
local COROUTINE = copy(coroutine, "running status yield")
TABLE.getn = TABLE.getn or function(list) return #list end
MATH.mod, STRING.gfind = MATH.fmod, STRING.gmatch

local function fresh(library)
  local made = {}
  for name, value in next, library do made[name] = value end
  return made
end

-- A script that catches everything must not catch that its steps are spent.

local spent = false
local SPENT = "the script takes more than " .. LIMIT .. " steps"

local function stop()
  spent = true
  error(SPENT, 0)
end

local function unless_spent(...)
  if spent then error(SPENT, 0) end
  return ...
end

local function guarded_pcall(...) return unless_spent(pcall(...)) end

-- The real one calls the function for errors from inside the hook, where no hook would stop it.
local function handled(on_error, fine, ...)
  if fine then return true, ... end
  return false, on_error(...)
end

local function guarded_xpcall(deed, on_error) return handled(on_error, guarded_pcall(deed)) end

local function guarded_resume(...) return unless_spent(co_resume(...)) end

-- In Lua 5.1 itself every coroutine has a hook of its own; LuaJIT has one for all.
local function guarded_create(deed)
  local made = co_create(deed)
  if not has_jit then sethook(made, stop, "", LIMIT) end
  return made
end

local function passed_on(fine, ...)
  if not fine then error((...), 0) end
  return ...
end

local function guarded_wrap(deed)
  local made = guarded_create(deed)
  return function(...) return passed_on(guarded_resume(made, ...)) end
end

-- Time: the world's, in UTC. Formats and defaults are those of Argo CD.

local MONTHS = { "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
  "November", "December" }
local DAYS = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" }

local function days_until(year, month, day)
  year, month = year + floor((month - 1) / 12), (month - 1) % 12 + 1
  if month <= 2 then year, month = year - 1, month + 12 end
  local leaps = floor(year / 4) - floor(year / 100) + floor(year / 400)
  return 365 * year + leaps + floor((153 * (month - 3) + 2) / 5) + day - 719469
end

local function field(fields, name, default)
  local value = rawget(fields, name)
  return type(value) == "number" and floor(value) or default
end

local function seconds_of(fields)
  local days = days_until(field(fields, "year", -1), field(fields, "month", -1), field(fields, "day", -1))
  local hours = 24 * days + field(fields, "hour", 12)
  return 3600 * hours + 60 * field(fields, "min", 0) + field(fields, "sec", 0)
end

local FLAGS = {
  a = function() return "mon" end,
  A = function(t) return DAYS[t.wday] end,
  b = function(t) return sub(MONTHS[t.month], 1, 3) end,
  B = function(t) return MONTHS[t.month] end,
  c = function(t)
    local clock = format("%02d:%02d UTC", t.hour, t.min)
    return format("%02d %s %02d ", t.day, sub(MONTHS[t.month], 1, 3), t.year % 100) .. clock
  end,
  d = function(t) return format("%02d", t.day) end,
  F = function(t) return format("%04d-%02d-%02d", t.year, t.month, t.day) end,
  H = function(t) return format("%02d", t.hour) end,
  I = function(t) return format("%02d", (t.hour + 11) % 12 + 1) end,
  m = function(t) return format("%02d", t.month) end,
  M = function(t) return format("%02d", t.min) end,
  p = function(t) return t.hour < 12 and "AM" or "PM" end,
  P = function(t) return t.hour < 12 and "am" or "pm" end,
  S = function(t) return format("%02d", t.sec) end,
  w = function(t) return format("%d", t.wday - 1) end,
  x = function(t) return format("%02d/%02d/%02d", t.hour, t.min, t.sec) end,
  X = function(t) return format("%02d:%02d:%02d", t.hour, t.min, t.sec) end,
  y = function(t) return format("%02d", t.year % 100) end,
  Y = function(t) return format("%04d", t.year) end,
  z = function() return "+0000" end,
  Z = function() return "UTC" end,
}

local function write_date(shape, at)
  local fields = date("!*t", at)
  if find(shape, "^%*t") then
    fields.yday, fields.isdst = 0, false
    return fields
  end
  return (gsub(shape, "%%(.)", function(flag)
    if flag == "%" then return "%" end
    return FLAGS[flag] and FLAGS[flag](fields)
  end))
end

local function clock_at(now)
  return {
    time = function(fields) return fields == nil and now or seconds_of(fields) end,
    date = function(shape, at) return write_date((gsub(shape or "%c", "^!+", "")), at or now) end,
  }
end

-- Text that becomes code. Bytecode can break out of everything, and is not taken.

local function load_text(chunk, name, env)
  if has_jit then return load(chunk, name, "t", env) end
  if type(chunk) == "function" then
    local reader, pieces = chunk, {}
    for piece in reader do
      if piece == "" then break end
      pieces[#pieces + 1] = piece
    end
    chunk = concat(pieces)
  end
  if sub(chunk, 1, 1) == "\27" then return nil, "attempt to load chunk with wrong mode" end
  local made, problem = loadstring(chunk, name)
  return made and setfenv(made, env), problem
end

-- The environment.

local function loaders(env)
  local function compile(chunk, name, wanted)
    if type(chunk) ~= wanted then error("bad argument #1 (" .. wanted .. " expected, got " .. type(chunk) .. ")", 3) end
    return load_text(chunk, name or "=<string>", env)
  end
  env.load = function(reader, name) return compile(reader, name, "function") end
  env.loadstring = function(text, name) return compile(text, name, "string") end
end

local function packages(env, now)
  local loaded = { _G = env, table = env.table }
  local preload = { os = function() return clock_at(now) end }
  env.package = { loaded = loaded, preload = preload, loaders = {}, path = "", cpath = "" }
  env.require = function(name)
    if loaded[name] == nil then
      local maker = preload[name]
      if maker == nil then error("module " .. tostring(name) .. " not found", 2) end
      local made = maker(name)
      loaded[name] = made == nil and true or made
    end
    return loaded[name]
  end
end

local function open_libraries(env, now)
  random_seed(1)
  env.string, env.math, env.os = fresh(STRING), fresh(MATH), clock_at(now)
  env.os.difftime = function(late, early) return late - (early or 0) end
  env.coroutine = fresh(COROUTINE)
  env.coroutine.create, env.coroutine.resume, env.coroutine.wrap = guarded_create, guarded_resume, guarded_wrap
  env.string.__index = env.string
  set_metatable("", env.string)
end

local function environment(obj, now, open)
  local env = {
    _VERSION = "Lua 5.1", actionParams = {}, obj = obj, table = fresh(TABLE),
    assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs,
    pcall = guarded_pcall, rawequal = rawequal, rawget = rawget, rawset = rawset, select = select,
    setmetatable = setmetatable, tonumber = tonumber, tostring = tostring, type = type, unpack = unpack,
    xpcall = guarded_xpcall, collectgarbage = function() end, print = function() end,
  }
  env._G = env
  loaders(env)
  packages(env, now)
  set_metatable("", nil)
  if open then open_libraries(env, now) end
  return env
end

-- What a script returns must be something that can be written as JSON.

local check

local function check_list(list, size, seen)
  for place = 1, size do
    if rawget(list, place) == nil then error("cannot encode sparse array", 0) end
    check(rawget(list, place), seen)
  end
end

local function check_table(value, seen)
  if seen[value] then error("cannot encode recursively nested tables to JSON", 0) end
  seen[value] = true
  local size, kind = 0, type(next(value))
  if kind ~= "nil" and kind ~= "number" and kind ~= "string" then error("cannot encode mixed or invalid key types", 0) end
  for key, inner in next, value do
    if type(key) ~= kind then error("cannot encode mixed or invalid key types", 0) end
    if kind == "string" then check(inner, seen) end
    size = size + 1
  end
  if kind == "number" then check_list(value, size, seen) end
end

function check(value, seen)
  local kind = type(value)
  if kind == "table" then
    check_table(value, seen)
  elseif kind == "number" then
    if value ~= value or value == huge or value == -huge then error("cannot encode number to JSON", 0) end
  elseif kind ~= "string" and kind ~= "boolean" then
    error("cannot encode " .. kind .. " to JSON", 0)
  end
end

-- Go takes a key for a field's whatever its case, and the last one counts. The keys are sorted.
local function text_of(value, name)
  local found = ""
  for key in next, value do
    if type(key) == "string" and lower(key) == name then
      if type(rawget(value, key)) ~= "string" then return nil end
      if found == "" or key > found then found = key end
    end
  end
  return found == "" and "" or rawget(value, found)
end

local function read_answer(value)
  if value == nil then return "nothing" end
  if type(value) ~= "table" then error("expect table output from Lua script, not " .. type(value), 0) end
  check(value, {})
  local status, message = text_of(value, "status"), text_of(value, "message")
  if type(next(value)) ~= "string" or not status or not message then return "nothing" end
  return "said", sub(status, 1, SHOWN), sub(message, 1, SHOWN)
end

local function last(...)
  local amount = select("#", ...)
  if amount > 0 then return (select(amount, ...)) end
end

local function plain(problem)
  local kind = type(problem)
  if kind == "string" then return sub(problem, 1, SHOWN) end
  return kind == "number" and tostring(problem) or "an error that is a " .. kind
end

local compiled, count = {}, 0

local function compile(script)
  if not compiled[script] then
    if count >= KEPT then compiled, count = {}, 0 end
    local chunk, problem = load_text(script, "=<string>", {})
    if not chunk then error(problem, 0) end
    compiled[script], count = chunk, count + 1
  end
  return compiled[script]
end

local function judge(script, obj, now, open)
  local chunk = compile(script)
  setfenv(chunk, environment(obj, now, open))
  sethook(stop, "", LIMIT)
  return read_answer(last(chunk()))
end

-- `said`, a status and a message; `nothing`; or `broke` and why.
return function(script, obj, now, open)
  spent = false
  local fine, how, first, second = pcall(judge, script, obj, now, open)
  sethook()
  set_metatable("", nil)
  if fine then return how, first or "", second or "" end
  return "broke", plain(how), ""
end
