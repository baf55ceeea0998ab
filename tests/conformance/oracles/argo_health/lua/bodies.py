"""Objects to judge, and argocd-cms to find scripts in."""

from __future__ import annotations

from tidegate.model.k8s.objects import Json, JsonObject

KIND = {"apiVersion": "example.com/v1", "kind": "Thing"}


def thing(**parts: Json) -> JsonObject:
    return {**KIND, "metadata": {"name": "one", "namespace": "shop", "generation": 3}, **parts}


def condition(kind: str, status: str, **more: Json) -> Json:
    return {"type": kind, "status": status, **more}


NEW = thing()
READY = thing(
    status={
        "observedGeneration": 3,
        "health": {"status": "Healthy", "message": "all is well"},
        "conditions": [
            condition("Synced", "True"),
            condition("Ready", "True", message="grün & <b>"),
        ],
    }
)
BROKEN = thing(
    status={
        "observedGeneration": 2,
        "health": {"status": "Degraded"},
        "conditions": [condition("Ready", "False", message="no quota"), None],
    }
)
ODD = thing(
    spec={
        "number": 3,
        "share": 0.25,
        "flag": False,
        "text": "a\nb\u2028\u00e9",
        "nothing": None,
        "list": [1, None, "x", {}],
        "map": {"a": None},
        "empty": [],
    },
    status={"health": {"status": "Lost"}, "conditions": [condition("Ready", "Unknown")]},
)
BODIES = (NEW, READY, BROKEN, ODD)

DELETED: JsonObject = {
    **KIND,
    "metadata": {"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z"},
}
HELD: JsonObject = {
    **KIND,
    "metadata": {
        "name": "one",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["argocd.argoproj.io/hook-finalizer"],
    },
}
SECRET: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}
CLAIM: JsonObject = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "one"},
    "status": {"phase": "Bound"},
}


def says(word: str) -> str:
    return f'return {{status = "Healthy", message = "{word}"}}'


def old(key: str, word: str, *more: str) -> str:
    lines = [f"{key!r}:", f"  health.lua: '{says(word)}'", *(f"  {line}" for line in more)]
    return "\n".join(lines) + "\n"


HEALTH, LIBRARIES = "resource.customizations.health.", "resource.customizations.useOpenLibs."
OLD = "resource.customizations"
OPEN_ONLY = 'return {status = "Healthy", message = type(string)}'

SETTINGS: dict[str, tuple[dict[str, str], JsonObject]] = {
    "deleted": ({HEALTH + "example.com_Thing": says("new")}, DELETED),
    "held": ({HEALTH + "example.com_Thing": says("new")}, HELD),
    "core kind": ({HEALTH + "Secret": says("core")}, SECRET),
    "before what is built in": ({HEALTH + "PersistentVolumeClaim": says("mine")}, CLAIM),
    "silent before what is built in": ({HEALTH + "PersistentVolumeClaim": "return nil"}, CLAIM),
    "empty script": ({HEALTH + "PersistentVolumeClaim": ""}, CLAIM),
    "other kind": ({HEALTH + "example.com_Other": says("other")}, NEW),
    "other group": ({HEALTH + "example.org_Thing": says("other")}, NEW),
    "no group": ({HEALTH + "Thing": says("other")}, NEW),
    "all": ({HEALTH + "all": says("all")}, NEW),
    "all but core": ({HEALTH + "all": says("all")}, SECRET),
    "name before pattern": (
        {HEALTH + "all": says("all"), HEALTH + "example.com_Thing": says("name")},
        NEW,
    ),
    "empty name, pattern": (
        {HEALTH + "all": says("all"), HEALTH + "example.com_Thing": ""},
        NEW,
    ),
    "old form": ({OLD: old("example.com/Thing", "old")}, NEW),
    "old pattern": ({OLD: old("*.com/*", "old")}, NEW),
    "old pattern of kinds": ({OLD: old("example.com/T*g", "old")}, NEW),
    "old pattern, other": ({OLD: old("*.org/*", "old")}, NEW),
    "old pattern across": ({OLD: old("ex*ng", "old")}, NEW),
    "one character": ({OLD: old("example.com/Thin?", "old")}, NEW),
    "one character too many": ({OLD: old("example.com/Thing?", "old")}, NEW),
    "class": ({OLD: old("example.com/[RST]hing", "old")}, NEW),
    "class without": ({OLD: old("example.com/[!RST]hing", "old")}, NEW),
    "range": ({OLD: old("example.com/[A-Z]hing", "old")}, NEW),
    "alternatives": ({OLD: old("{example,sample}.com/Thing", "old")}, NEW),
    "no alternative": ({OLD: old("{simple,sample}.com/Thing", "old")}, NEW),
    "everything old": ({OLD: old("*", "old")}, SECRET),
    "new over old": (
        {OLD: old("example.com/Thing", "old"), HEALTH + "example.com_Thing": says("new")},
        NEW,
    ),
    "open libraries": (
        {HEALTH + "example.com_Thing": OPEN_ONLY, LIBRARIES + "example.com_Thing": "true"},
        NEW,
    ),
    "closed libraries": (
        {HEALTH + "example.com_Thing": OPEN_ONLY, LIBRARIES + "example.com_Thing": "F"},
        NEW,
    ),
    "open libraries over old": (
        {
            OLD: f"example.com/Thing:\n  health.lua: '{OPEN_ONLY}'\n",
            LIBRARIES + "example.com_Thing": "1",
        },
        NEW,
    ),
    "old libraries under new": (
        {
            OLD: old("example.com/Thing", "old", "health.lua.useOpenLibs: true"),
            HEALTH + "example.com_Thing": OPEN_ONLY,
        },
        NEW,
    ),
    "other customizations": (
        {
            "resource.customizations.actions.example.com_Thing": "definitions: []",
            "resource.customizations.ignoreDifferences.all": "jsonPointers: [/a]",
            "resource.customizations.knownTypeFields.example.com_Thing": "[]",
            "resource.customizations.ignoreResourceUpdates.all": "jsonPointers: [/a]",
            HEALTH + "example.com_Thing": says("new"),
        },
        NEW,
    ),
    "key without a kind": ({"resource.customizations.health": "x"}, NEW),
    "key with an empty kind": ({HEALTH: "x"}, NEW),
    "key of three": ({HEALTH + "a_b_c": "x"}, NEW),
    "key of another type": ({"resource.customizations.heath.Thing": "x"}, NEW),
    "neither true nor false": ({LIBRARIES + "example.com_Thing": "yes"}, NEW),
    "old form is no YAML": ({OLD: "a: ["}, NEW),
    "old form is a list": ({OLD: "[1]"}, NEW),
    "old entry is a text": ({OLD: "a/b: x"}, NEW),
    "old script is a list": ({OLD: "a/b: {health.lua: [1]}"}, NEW),
    "old libraries are a text": ({OLD: "a/b: {health.lua.useOpenLibs: 'true'}"}, NEW),
    "old form is empty": ({OLD: ""}, NEW),
}
