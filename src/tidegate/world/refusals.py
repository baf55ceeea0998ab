"""A refusal as an error for people: what was being done, what the cluster said, a way out."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.errors import ClusterError, LateError, Place, foreign
from tidegate.world.facts import (
    Conflict,
    Exists,
    Expired,
    Failed,
    Forbidden,
    Invalid,
    Loss,
    Lost,
    Missing,
    NotServed,
    Refusal,
    Throttled,
)


class Advice(NamedTuple):
    code: str
    hint: str


UNAUTHORIZED = 401
SIGN_IN = Advice("cluster.unauthorized", "sign in again, or choose another context or user")

REFUSALS: dict[type[Refusal], Advice] = {
    Conflict: Advice("cluster.conflict", "read it again: somebody else changed it"),
    Exists: Advice("cluster.exists", "choose another name, or change what is there"),
    Expired: Advice("cluster.expired", "list again"),
    Failed: Advice("cluster.failed", "the API server's log says more"),
    Forbidden: Advice("cluster.forbidden", "ask for the right, or choose another context or user"),
    Invalid: Advice("cluster.invalid", "correct the field that is named"),
    Missing: Advice("cluster.missing", "check name and namespace"),
    NotServed: Advice("cluster.not-served", "install the CRD first, or check apiVersion and kind"),
    Throttled: Advice("cluster.throttled", "try again later"),
}

LOSSES = {
    Loss.CREDENTIALS: Advice("cluster.credentials", "mend the credentials of this user"),
    Loss.DISCONNECTED: Advice("cluster.disconnected", "is this the address of an API server?"),
    Loss.HANGING: Advice(
        "cluster.login-timeout", "run the plugin by hand and see what it waits for"
    ),
    Loss.LATE: Advice("cluster.timeout", "try again, or allow more time"),
    Loss.PROXY: Advice("cluster.proxy", "check `proxy-url` of this cluster"),
    Loss.REFUSED: Advice("cluster.unreachable", "is the server running, and its address right?"),
    Loss.TIMEOUT: Advice("cluster.timeout", "is the server reachable from here (VPN, firewall)?"),
    Loss.UNKNOWN_HOST: Advice("cluster.unknown-host", "check the server's name, your DNS and VPN"),
    Loss.UNTRUSTED: Advice(
        "cluster.untrusted", "check `certificate-authority` and `tls-server-name` of this cluster"
    ),
    Loss.WITHDRAWN: Advice("cluster.timeout", "try again, or allow more time"),
}


def refusal_error(refusal: Refusal, doing: str, *, where: Place) -> ClusterError:
    """The one error for a refusal."""
    advice = _advice(refusal)
    is_late = isinstance(refusal, Lost) and refusal.reason is Loss.HANGING
    return (LateError if is_late else ClusterError)(
        advice.code, f"{doing}: {foreign(refusal.message)}", where=where, hint=advice.hint
    )


def _advice(refusal: Refusal) -> Advice:
    match refusal:
        case Lost():
            usual = LOSSES[refusal.reason]
            return Advice(usual.code, refusal.hint or usual.hint)
        case Failed(status=status) if status == UNAUTHORIZED:
            return SIGN_IN
        case _:
            return REFUSALS[type(refusal)]
