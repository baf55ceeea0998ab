"""Rules of health as scripts: which script is for an object, and what to ask a worker.

    rules = read_lua_rules(content, "argocd-cm.yaml")
    request = rules.request(body, now)        # None: no script is for it
    verdict = read_verdict(reply, body)       # once the answer is there

Argo CD's order: an object that is being deleted needs no script, then scripts, then what is built
in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from tidegate.errors import Location
from tidegate.health.argo.verdicts import is_held
from tidegate.health.lua.messages import Question, write_question
from tidegate.health.lua.patterns import compile_pattern, is_pattern, literal_size
from tidegate.model.k8s.json_fields import get_text, get_value
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.times import SECOND, Ms
from tidegate.world.requests import RunWorker

WORK = "lua"
"""What a world calls the work of running a script."""


class Script(msgspec.Struct, frozen=True):
    """A script, the libraries it may use, and where it stands."""

    text: str
    open_libs: bool = False
    where: Location | None = None


class LuaRules(msgspec.Struct, frozen=True):
    """Scripts by group and kind, `apps/Deployment` or `Pod`, and by patterns of such keys."""

    named: dict[str, Script]
    patterns: tuple[tuple[re.Pattern[str], Script], ...] = ()

    @classmethod
    def of(cls, scripts: Iterable[tuple[str, Script]]) -> LuaRules:
        """Of patterns, the one that says most goes first, then the one that was given first.

        Raises ValueError for what is no pattern.
        """
        known = {key: script for key, script in dict(scripts).items() if script.text}
        patterns = sorted(filter(is_pattern, known), key=literal_size, reverse=True)
        return cls(known, tuple((compile_pattern(key), known[key]) for key in patterns))

    def lookup(self, group: str, kind: str) -> Script | None:
        """The script that names the kind, or else one whose pattern fits it."""
        key = f"{group}/{kind}" if group else kind
        found = self.named.get(key)
        if found is not None:
            return found
        fitting = (script for pattern, script in self.patterns if pattern.fullmatch(key))
        return next(fitting, None)

    def script_for(self, body: dict[str, Json]) -> Script | None:
        """The script that judges an object; none where it is being deleted."""
        if not self.named:
            return None
        if get_value(body, "metadata", "deletionTimestamp") is not None and not is_held(body):
            return None
        kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
        return self.lookup(kind.group, kind.name)

    def request(self, body: dict[str, Json], now: Ms) -> RunWorker | None:
        """Return the request that runs the script for an object; None without a script.

        Scripts that ask for the time are told `now`.
        """
        script = self.script_for(body)
        if script is None:
            return None
        encoded = msgspec.json.encode(body)
        question = Question(script.text, script.open_libs, now // SECOND, encoded)
        return RunWorker(WORK, write_question(question))


NO_RULES = LuaRules({})
