"""Plan items from manifests: the body that is applied, and the settings for its gate."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.manifest import Manifest
from tidegate.model.plans.plan import HOOK_FINALIZER, HookPolicy, PlanItem, digest_bytes
from tidegate.model.times import Ms
from tidegate.plan.diff.fingerprint import is_secret
from tidegate.plan.diff.values import normalize_secret

ReadinessTimeout = Callable[[JsonObject], Ms | None]
JOB_KIND = ("batch", "Job")
PAUSE_FIELDS = ("suspend", "paused")
"""Fields with which Git itself pauses an object."""


def make_item(
    manifest: Manifest,
    phase: str,
    readiness_timeout: ReadinessTimeout,
    *,
    with_finalizer: bool = True,
) -> PlanItem:
    """Return the item for a manifest in a phase.

    `with_finalizer`: a hook gets a finalizer that keeps it until its health is known.
    """
    body: JsonObject = msgspec.json.decode(manifest.body)
    kind = manifest.ref.kind
    is_job = (kind.group, kind.name) == JOB_KIND
    is_hook = manifest.hook_policies is not None
    has_ttl = is_job and get_value(body, "spec", "ttlSecondsAfterFinished") is not None
    applied_body = _applied_body(manifest, body, with_finalizer=with_finalizer and is_hook)
    return PlanItem(
        ref=manifest.ref,
        body=applied_body,
        digest=digest_body(applied_body, manifest.hook_policies, phase),
        action=manifest.action,
        origin=manifest.origin,
        readiness_timeout=readiness_timeout(body) or Ms(0),
        expires=has_ttl and not is_hook,
        is_suspended=any(get_value(body, "spec", field) is True for field in PAUSE_FIELDS),
        hook=manifest.hook_policies,
        is_gating=manifest.is_gating and not manifest.child_units,
        generates_name=is_hook and not get_text(body, "metadata", "name"),
        options=manifest.options,
        hidden_fields=manifest.hidden_fields,
    )


def digest_body(body: bytes, hook: tuple[HookPolicy, ...] | None, phase: str) -> str:
    """Return the digest of a body. A hook has one per phase, so that it runs in each of its
    phases.
    """
    return digest_bytes(body) if hook is None else digest_bytes(body, phase.encode())


def _applied_body(manifest: Manifest, body: JsonObject, *, with_finalizer: bool) -> bytes:
    """Return the applied body. A Secret has one map of values, so that removed keys are deleted."""
    if is_secret(body):
        body = normalize_secret(body)
    elif not with_finalizer:
        return msgspec.json.format(manifest.body, indent=-1)
    return msgspec.json.encode(with_hook_finalizer(body) if with_finalizer else body)


def with_hook_finalizer(body: JsonObject) -> JsonObject:
    """Return a hook with the finalizer that keeps it until its health is known."""
    metadata = get_mapping(body, "metadata")
    finalizers = get_list(metadata, "finalizers")
    if HOOK_FINALIZER in finalizers:
        return body
    return {**body, "metadata": {**metadata, "finalizers": [*finalizers, HOOK_FINALIZER]}}
