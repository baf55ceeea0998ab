"""What a container cannot start without: Secrets and ConfigMaps, as variables and as volumes."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.knowledge import references, settings
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mappings, text
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.server.store import Body, Stored

WORDS = {references.SECRET: "secret", references.CONFIG_MAP: "configmap"}
ABSENT_KEY = {
    references.SECRET: "references non-existent secret key: {}",
    references.CONFIG_MAP: "configmap references non-existent config key: {}",
}
"""How a kubelet speaks of the two kinds that hold """


def missing_setting(view: Visible, pod: Stored, container: Json) -> str:
    """The first variable that has no value, in a kubelet's words; empty where all have one."""
    namespace = pod.ref.namespace
    for kind, reference in references.whole_sources(container):
        if not reference.get("optional") and _found(view, kind, namespace, reference) is None:
            return _absent(kind, reference)
    for _, kind, reference in references.single_sources(container):
        trouble = _missing_key(view, kind, namespace, reference)
        if trouble and not reference.get("optional"):
            return trouble
    return ""


def missing_volume(view: Visible, pod: Stored) -> tuple[str, str]:
    """The first volume that cannot be mounted and why, or two empty texts."""
    for volume in mappings(pod.body, "spec", "volumes"):
        for kind, reference in references.volume_sources(volume):
            trouble = _unmountable(view, kind, pod.ref.namespace, reference)
            if trouble and not reference.get("optional"):
                return text(volume, "name"), trouble
    return "", ""


def variables_of(view: Visible, pod: Stored, container: Json) -> Iterator[tuple[str, str]]:
    """The variables of a container with their values, as far as they are known."""

    def find(kind: Kind, name: str) -> Body | None:
        found = view.get(Ref(kind, pod.ref.namespace, name))
        return found.body if found else None

    return settings.variables_of(container, find)


def _found(view: Visible, kind: Kind, namespace: str, reference: Body) -> Stored | None:
    return view.get(Ref(kind, namespace, text(reference, "name")))


def _absent(kind: Kind, reference: Body) -> str:
    return f'{WORDS[kind]} "{text(reference, "name")}" not found'


def _missing_key(view: Visible, kind: Kind, namespace: str, reference: Body) -> str:
    found = _found(view, kind, namespace, reference)
    if found is None:
        return _absent(kind, reference)
    key, name = text(reference, "key"), text(reference, "name")
    if settings.has_open_keys(found.body) or key in settings.keys_of(found.body, binary=False):
        return ""
    return f"couldn't find key {key} in {kind.name} {namespace}/{name}"


def _unmountable(view: Visible, kind: Kind, namespace: str, reference: Body) -> str:
    found = _found(view, kind, namespace, reference)
    if found is None:
        return _absent(kind, reference)
    if settings.has_open_keys(found.body):
        return ""
    held = settings.keys_of(found.body)
    for item in mappings(reference, "items"):
        if text(item, "key") not in held:
            return ABSENT_KEY[kind].format(text(item, "key"))
    return ""
