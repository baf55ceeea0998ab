"""Whether objects are the same, apart from what controllers add and reports hide."""

from __future__ import annotations

from tests.support.expected_units import Expected
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.change import MASK

STAMPS = {
    "labels": (
        "kustomize.toolkit.fluxcd.io/name",
        "kustomize.toolkit.fluxcd.io/namespace",
        "helm.toolkit.fluxcd.io/name",
        "helm.toolkit.fluxcd.io/namespace",
        "app.kubernetes.io/instance",
    ),
    "annotations": ("argocd.argoproj.io/tracking-id",),
}
"""Whose an object is; some are stamped when it is rendered, some when it is applied."""


def differences(recorded: list[JsonObject], shown: list[JsonObject], unit: Expected) -> list[str]:
    """What is missing, what is too much, and where two differ."""
    recorded = [item for item in recorded if not is_test(item)]
    shown = [_unmasked(item, recorded) for item in shown]
    expected, given = _by_name(recorded, unit), _by_name(shown, unit)
    texts = [f"missing: {name}" for name in sorted(expected.keys() - given.keys())]
    texts += [f"too much: {name}" for name in sorted(given.keys() - expected.keys())]
    for name in sorted(expected.keys() & given.keys()):
        texts += [f"{name}: {item}" for item in _apart(expected[name], given[name], "")]
    if not texts and len(recorded) != len(shown):
        texts.append(f"{len(shown)} objects, not {len(recorded)}")
    return texts


def is_test(body: JsonObject) -> bool:
    """A test of a chart, which Argo CD renders and never applies."""
    return get_text(body, "metadata", "annotations", "helm.sh/hook").startswith("test")


def _unmasked(body: JsonObject, recorded: list[JsonObject]) -> JsonObject:
    """Replace the name of an encrypted object, which is the only object of its kind."""
    if get_text(body, "metadata", "name") != MASK:
        return body
    (name,) = {
        get_text(item, "metadata", "name") for item in recorded if item["kind"] == body["kind"]
    }
    return {**body, "metadata": {**get_mapping(body, "metadata"), "name": name}}


def _by_name(objects: list[JsonObject], unit: Expected) -> dict[str, JsonObject]:
    return {_name(body): body for body in (_plain(item, unit) for item in objects)}


def _name(body: JsonObject) -> str:
    metadata = body["metadata"]
    known = metadata if isinstance(metadata, dict) else {}
    return f"{body['apiVersion']} {body['kind']} {known.get('namespace', '')}/{known['name']}"


def _plain(body: JsonObject, unit: Expected) -> JsonObject:
    """Without stamps, and without the namespace that the unit would give it anyway."""
    metadata = body.get("metadata")
    kept: JsonObject = dict(metadata) if isinstance(metadata, dict) else {}
    for part, stamps in STAMPS.items():
        values = kept.pop(part, None)
        if isinstance(values, dict):
            values = {key: item for key, item in values.items() if key not in stamps}
        if values:
            kept[part] = values
    if kept.get("namespace") == unit.namespace:
        kept.pop("namespace", None)
    return {**body, "metadata": kept}


def _apart(expected: Json, given: Json, path: str) -> list[str]:
    if given == MASK:
        return []
    if isinstance(expected, dict) and isinstance(given, dict):
        texts = [f"{path}.{key} is missing" for key in sorted(expected.keys() - given.keys())]
        texts += [f"{path}.{key} is too much" for key in sorted(given.keys() - expected.keys())]
        for key in sorted(expected.keys() & given.keys()):
            texts += _apart(expected[key], given[key], f"{path}.{key}")
        return texts
    if isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        pairs = zip(expected, given, strict=True)
        return [item for n, (a, b) in enumerate(pairs) for item in _apart(a, b, f"{path}[{n}]")]
    same = type(expected) is type(given) and expected == given
    return [] if same else [f"{path} is {given!r}, not {expected!r}"]
