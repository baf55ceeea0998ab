"""A repository with Kustomizations, and what commands make of it.

layers = Layers(tmp_path)
layers.put("apps/web.yaml", setting("web"))
layers.unit("apps")                                   # Kustomization flux-system/apps of ./apps

assert layers.rendered("apps")["web"]["data"] == {"to": "1"}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

from tests.support.repositories import Repository, git_repository, kustomization, namespace
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject

Ran = CompletedProcess[str]
UNIT = "Kustomization/flux-system/"


@dataclass(slots=True)
class Layers:
    """Kustomizations of one repository, each with a directory of its own name."""

    root: Path
    units: dict[str, JsonObject] = field(default_factory=dict)
    more: list[JsonObject] = field(default_factory=list)
    """Objects in the same file."""

    def unit(self, name: str, **spec: Json) -> None:
        """A Kustomization; `path`, `after` and `into` in short, the rest as Flux has it."""
        path, into = str(spec.pop("path", f"./{name}")), str(spec.pop("into", "shop"))
        after = spec.pop("after", ())
        names = tuple(map(str, after)) if isinstance(after, list | tuple) else ()
        self.units[name] = kustomization(name, path, after=names, into=into, **spec)

    def put(self, path: str, *bodies: JsonObject) -> None:
        Repository(self.root).put(path, *bodies)

    def write(self, path: str, content: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def write_units(self) -> None:
        bodies = [git_repository(), namespace("shop"), *self.more, *self.units.values()]
        self.put("clusters/main/all.yaml", *bodies)

    def run(self, *words: str, **environment: str) -> Ran:
        self.write_units()
        verb, *others = words
        return tidegate(verb, self.root, *others, **environment)

    def rendered(self, name: str, *words: str, **environment: str) -> dict[str, JsonObject]:
        """What a unit renders to, by name."""
        ran = self.render(name, *words, **environment)
        assert ran.returncode == 0, ran.stderr
        bodies: list[JsonObject] = [json.loads(line) for line in ran.stdout.splitlines()]
        return {get_text(body, "metadata", "name"): body for body in bodies}

    def render(self, name: str, *words: str, **environment: str) -> Ran:
        return self.run("render", "--unit", UNIT + name, "-o", "json", *words, **environment)


def events(ran: Ran, engine: str = "") -> list[dict[str, Json]]:
    """The output, of this engine alone if there are several."""
    messages: list[dict[str, Json]] = [json.loads(line) for line in ran.stdout.splitlines()]
    return [item for item in messages if not engine or item.get("engine") == engine]


def begins(ran: Ran, engine: str = "") -> dict[str, float]:
    """By step, the second in which it was last begun to be applied."""
    messages = [event for event in events(ran, engine) if "at" in event]
    start = int(str(messages[0]["at"]))
    return {
        str(item["step"]).removeprefix(UNIT): round((int(str(item["at"])) - start) / 1000, 1)
        for item in messages
        if item["event"] == "step.applying"
    }
