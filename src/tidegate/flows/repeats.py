"""Objects that only client-side apply takes: they are put there as they are, and that is told."""

from __future__ import annotations

import msgspec

from tidegate.errors import Place, foreign
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.plan import Deed
from tidegate.model.policy import Tracking
from tidegate.schema.repeats import find_repeats


def with_repeats(wanted: Manifests) -> tuple[Manifests, list[Finding]]:
    """The manifests, those with entries that no server can merge as what replaces what is there.

    Flux applies by the server, which refuses them.
    """
    if wanted.unit.policy.tracking is Tracking.FLUX:
        return wanted, []
    findings: list[Finding] = []
    made = tuple(_looked_at(one, wanted, findings) for one in wanted.manifests)
    return (msgspec.structs.replace(wanted, manifests=made) if findings else wanted), findings


def _looked_at(one: Manifest, wanted: Manifests, findings: list[Finding]) -> Manifest:
    if one.deed is not Deed.APPLY or one.handling.replaces:
        return one
    repeats = find_repeats(one.ref.kind, one.body)
    if not repeats:
        return one
    findings.append(_told(one, wanted, repeats))
    handling = msgspec.structs.replace(one.handling, replaces=True)
    return msgspec.structs.replace(one, handling=handling)


def _told(one: Manifest, wanted: Manifests, repeats: list[str]) -> Finding:
    return Finding(
        code="units.repeats",
        severity=Severity.WARNING,
        sentence=f"{one.ref} has entries of one key: {foreign('; '.join(repeats))}",
        where=wanted.unit.where or Place(one.origin),
        why=f"the server does not apply such a list, at {one.origin}: the object is replaced"
        " instead, and fields of others in it are not kept",
        fix="keep one of the entries",
    )
