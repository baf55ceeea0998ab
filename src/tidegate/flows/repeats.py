"""Objects that only client-side apply takes: they are put there as they are, and that is told."""

from __future__ import annotations

import msgspec

from tidegate.errors import Location, sanitize
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.plan import ItemAction
from tidegate.model.policy import Tracking
from tidegate.schema.repeats import find_repeats


def replace_unmergeable(manifests: Manifests) -> tuple[Manifests, list[Finding]]:
    """Return the manifests; objects with duplicate list keys are replaced instead of applied.

    Only client-side apply accepts such lists. Flux applies server-side, where the server
    rejects them.
    """
    if manifests.unit.policy.tracking is Tracking.FLUX:
        return manifests, []
    findings: list[Finding] = []
    checked = tuple(
        _check_duplicates(manifest, manifests, findings) for manifest in manifests.manifests
    )
    return (
        msgspec.structs.replace(manifests, manifests=checked) if findings else manifests
    ), findings


def _check_duplicates(
    manifest: Manifest, manifests: Manifests, findings: list[Finding]
) -> Manifest:
    if manifest.action is not ItemAction.APPLY or manifest.options.replaces:
        return manifest
    duplicates = find_repeats(manifest.ref.kind, manifest.body)
    if not duplicates:
        return manifest
    findings.append(_duplicate_finding(manifest, manifests, duplicates))
    handling = msgspec.structs.replace(manifest.options, replaces=True)
    return msgspec.structs.replace(manifest, options=handling)


def _duplicate_finding(manifest: Manifest, manifests: Manifests, duplicates: list[str]) -> Finding:
    return Finding(
        code="units.repeats",
        severity=Severity.WARNING,
        message=f"{manifest.ref} has entries of one key: {sanitize('; '.join(duplicates))}",
        location=manifests.unit.location or Location(manifest.origin),
        reason=(
            f"the server does not apply such a list, at {manifest.origin}: the object is replaced"
            " instead, and fields of others in it are not kept"
        ),
        fix="keep one of the entries",
    )
