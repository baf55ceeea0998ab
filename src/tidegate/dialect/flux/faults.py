"""What Flux says of a Kustomization that cannot begin: the reason, and its own sentence."""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.model.account import UnitAccount
from tidegate.model.objects import Json
from tidegate.model.reading import mappings, text

Body = dict[str, Json]
UNREADY = "DependencyNotReady"
TERMINAL = "Reconciliation failed terminally due to configuration error: "
API = "kustomizations.kustomize.toolkit.fluxcd.io"


class FluxFault(NamedTuple):
    """`is_terminal`: Flux tries again only when the text is another. `was_had`: its source was."""

    reason: str
    message: str
    is_terminal: bool = False
    was_had: bool = False


def fault_of(own: Body, account: UnitAccount) -> FluxFault:
    """By the code of what was found, what kustomize-controller would say of the same object."""
    code, told = account.code, account.sentence or account.reason
    if code == "flux.expression":
        return FluxFault("InvalidCELExpression", f"{TERMINAL}{told}", is_terminal=True)
    if (other := _dependency(own, account)) is not None:
        return FluxFault(UNREADY, _unready(own, other, account))
    if code == "flux.never":
        return FluxFault("HealthCheckFailed", told, was_had=True)
    if code == "flux.access" and (source := _foreign_source(own)):
        message = f"can't access '{source}', cross-namespace references have been blocked"
        return FluxFault("AccessDenied", message, is_terminal=True)
    if code == "source.path":
        path = text(own, "spec", "path")
        message = f"kustomization path not found: stat {path}: no such file or directory"
        return FluxFault("ArtifactFailed", message)
    if code.startswith("source."):
        return FluxFault("ArtifactFailed", told)
    return FluxFault("BuildFailed", _missing_data(own, account) or told, was_had=True)


def _dependency(own: Body, account: UnitAccount) -> Body | None:
    """The entry of `dependsOn` that the fault is about."""
    if account.code == "plan.cycle":
        entries = mappings(own, "spec", "dependsOn")
        named = (one for one in entries if f"`Kustomization/{_home(own, one)}`" in account.sentence)
        return next(named, None)
    return _entry(own, account.field, "dependsOn")


def _unready(own: Body, other: Body, account: UnitAccount) -> str:
    dependency = f"dependency '{_home(own, other)}'"
    if account.code == "units.unknown":
        return f'{dependency} not found: {API} "{text(other, "name")}" not found'
    how = " according to readyExpr eval" if account.code == "flux.never" else ""
    return f"{dependency} is not ready{how}"


def _missing_data(own: Body, account: UnitAccount) -> str:
    """Of data for variables that is not there."""
    if (one := _entry(own, account.field, "postBuild", "substituteFrom")) is None:
        return ""
    kind, name = text(one, "kind"), text(one, "name")
    return f"substitute from '{kind}/{name}' error: {kind.lower()}s \"{name}\" not found"


def _entry(own: Body, field: str, *path: str) -> Body | None:
    """The entry of a list of the spec that a field is, or lies in."""
    entries = mappings(own, "spec", *path)
    found = re.match(rf"spec\.{re.escape('.'.join(path))}\[(\d+)\]", field)
    at = int(found[1]) if found else len(entries)
    return entries[at] if at < len(entries) else None


def _home(own: Body, other: Body) -> str:
    home = text(other, "namespace", default=text(own, "metadata", "namespace"))
    return f"{home}/{text(other, 'name')}"


def _foreign_source(own: Body) -> str:
    """The source, where it is in another namespace."""
    home = text(own, "metadata", "namespace")
    place = text(own, "spec", "sourceRef", "namespace", default=home)
    kind, name = (text(own, "spec", "sourceRef", key) for key in ("kind", "name"))
    return "" if place == home else f"{kind}/{place}/{name}"
