"""Manifests become items: the text that is applied, and what it says about waiting for it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.model.manifest import Manifest
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.plan import FINALIZER, HookPolicy, Item, digest_bytes
from tidegate.model.reading import listed, mapping, part, text
from tidegate.plan.diff.seal import is_secret
from tidegate.plan.diff.values import fold_text

Body = dict[str, Json]
Budget = Callable[[Body], Ms | None]
JOBS = ("batch", "Job")
PAUSES = ("suspend", "paused")
"""Fields by which Git itself asks for a pause."""


def make_item(manifest: Manifest, phase: str, budget: Budget, *, held: bool = True) -> Item:
    """What is applied in a phase. `held`: a hook is kept in the cluster until it is judged."""
    body: Body = msgspec.json.decode(manifest.body)
    kind = manifest.ref.kind
    is_job = (kind.group, kind.name) == JOBS
    is_hook = manifest.hook is not None
    expires = is_job and part(body, "spec", "ttlSecondsAfterFinished") is not None
    applied = _text(manifest, body, held=held and is_hook)
    return Item(
        ref=manifest.ref,
        body=applied,
        digest=digest_text(applied, manifest.hook, phase),
        deed=manifest.deed,
        origin=manifest.origin,
        budget=budget(body) or Ms(0),
        expires=expires and not is_hook,
        suspends=any(part(body, "spec", word) is True for word in PAUSES),
        recreates=is_job or manifest.handling.forces,
        hook=manifest.hook,
        gates=manifest.gates and not manifest.brings,
        generates=is_hook and not text(body, "metadata", "name"),
        handling=manifest.handling,
        hidden=manifest.hidden,
    )


def digest_text(applied: bytes, hook: tuple[HookPolicy, ...] | None, phase: str) -> str:
    """A name for a text; a hook that ran in one phase has yet to run in the next one."""
    return digest_bytes(applied) if hook is None else digest_bytes(applied, phase.encode())


def _text(manifest: Manifest, body: Body, *, held: bool) -> bytes:
    """What is applied: Secrets with one map of values, so that a key that goes is gone."""
    if is_secret(body):
        body = fold_text(body)
    elif not held:
        return msgspec.json.format(manifest.body, indent=-1)
    return msgspec.json.encode(hold(body) if held else body)


def hold(body: Body) -> Body:
    """A hook with the finalizer that keeps it until it is judged."""
    metadata = mapping(body, "metadata")
    finalizers = listed(metadata, "finalizers")
    if FINALIZER in finalizers:
        return body
    return {**body, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}}
