"""Overlays made by chance: the same seed gives the same files."""

from __future__ import annotations

import random

from tests.support.overlays import OverlayCase
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.objects import Json
from tidegate.model.units.rendering import LoadRestriction

WORDS = ("web", "db", "yes", "0777", "1e3", "null", "a b", "ä", "x: y", "- z", "", "#no", "~")
NAMES = ("web", "db", "cache", "mail")


def random_case(seed: int) -> OverlayCase:
    """A base, an overlay and a component, each with some of the features there are."""
    rng = random.Random(seed)
    files: dict[str, str] = {}
    names = rng.sample(NAMES, rng.randint(1, 3))
    for name in names:
        files[f"base/{name}.yaml"] = "---\n".join(
            to_yaml(body) for body in (_deployment(rng, name), _settings(rng, name))
        )
    _add(files, "base", {"resources": [f"{name}.yaml" for name in names], **_changes(rng)})
    part: dict[str, Json] = {"kind": "Component", **_changes(rng)}
    part["configMapGenerator"] = [{"name": "part", "literals": [f"k={rng.choice(WORDS)}"]}]
    _add(files, "part", part)
    top: dict[str, Json] = {"resources": ["../base"], **_changes(rng), **_generators(rng)}
    if rng.random() < 0.5:
        top["components"] = ["../part"]
    if rng.random() < 0.7:
        top["patches"] = _patches(rng, files)
    _add(files, "app", top)
    return OverlayCase(files=files, restriction=rng.choice(list(LoadRestriction)))


def _add(files: dict[str, str], folder: str, body: dict[str, Json]) -> None:
    files[f"{folder}/kustomization.yaml"] = to_yaml(body)


def _text(rng: random.Random) -> str:
    return rng.choice(WORDS)


def _settings(rng: random.Random, name: str) -> dict[str, Json]:
    data: dict[str, Json] = {f"k{n}": _text(rng) for n in range(rng.randint(0, 3))}
    metadata: dict[str, Json] = {"name": f"{name}-settings"}
    if rng.random() < 0.4:
        metadata["annotations"] = {"note": _text(rng)} if rng.random() < 0.7 else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _deployment(rng: random.Random, name: str) -> dict[str, Json]:
    env: list[Json] = [{"name": f"E{n}", "value": _text(rng)} for n in range(rng.randint(0, 3))]
    container: dict[str, Json] = {"name": name, "image": f"shop/{name}:1.0", "env": env}
    container["envFrom"] = [{"configMapRef": {"name": f"{name}-settings"}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": rng.randint(0, 9),
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


def _changes(rng: random.Random) -> dict[str, Json]:
    choices: dict[str, Json] = {
        "namePrefix": f"p{rng.randint(0, 9)}-",
        "nameSuffix": f"-s{rng.randint(0, 9)}",
        "namespace": rng.choice(["shop", "test"]),
        "commonAnnotations": {f"a{rng.randint(0, 3)}": _text(rng)},
        "labels": [{"pairs": {f"l{rng.randint(0, 3)}": "v"}, "includeTemplates": True}],
        "images": [{"name": f"shop/{rng.choice(NAMES)}", "newTag": rng.choice(["2", "1.10"])}],
        "generatorOptions": {"labels": {"made": "here"}},
    }
    return {name: choices[name] for name in choices if rng.random() < 0.35}


def _generators(rng: random.Random) -> dict[str, Json]:
    literals: list[Json] = [f"k{n}={_text(rng)}" for n in range(rng.randint(1, 3))]
    plain: dict[str, Json] = {"name": "top", "literals": literals}
    return {
        kind: [plain] for kind in ("configMapGenerator", "secretGenerator") if rng.random() < 0.5
    }


def _patches(rng: random.Random, files: dict[str, str]) -> list[Json]:
    labels: Json = [{"op": "add", "path": "/metadata/labels", "value": {"json": _text(rng)}}]
    scale: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "any"},
        "spec": {"replicas": rng.randint(0, 9), "paused": rng.random() < 0.5},
    }
    files["app/scale.yaml"] = to_yaml(scale)
    target: Json = {"kind": "Deployment"}
    inline: Json = {"target": {"kind": "ConfigMap"}, "patch": to_yaml(labels)}
    return [inline, {"target": target, "path": "scale.yaml"}][: rng.randint(1, 2)]
