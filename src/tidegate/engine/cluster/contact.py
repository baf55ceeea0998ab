"""Contact with a cluster: since when calls have had no answer, or renewals were refused.

A renewal of the heartbeat is a small write that no webhook delays, so it is missed sooner than
any other call. A watch that is set up is silent as long as nothing changes and does not count.
A process that may not renew its heartbeat may not write, although the cluster answers.
"""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from tidegate.errors import sanitize
from tidegate.model.display import cluster_noun
from tidegate.model.k8s.kinds import LEASE
from tidegate.model.times import SECOND, Ms, format_timestamp
from tidegate.world.messages import (
    ErrorOutcome,
    Forbidden,
    LossReason,
    NoResponse,
    Outcome,
    ServerError,
    is_error,
)
from tidegate.world.requests import Request, RequestId, RunWorker, Write
from tidegate.world.scheduler import SERVER_ERROR

ANSWER_LIMIT = Ms(8 * SECOND)
"""How long a cluster may answer nothing while calls wait for it."""
RENEWAL_LIMIT = Ms(3 * SECOND)
"""The same for a renewal of the heartbeat."""
OLD_CALL_LIMIT = Ms(15 * SECOND)
"""The same for a call that was sent before the last answer: it may wait for its next attempt."""

UNAUTHORIZED = 401
OUR_LOSSES = frozenset({LossReason.CANCELLED, LossReason.DEADLINE_PASSED})
"""Why a call may end without an answer that the cluster could have given."""


class ClusterContact(msgspec.Struct):
    """The calls of one cluster that wait for an answer."""

    silent_since: Ms | None = None
    """Time since which calls have had no answer; None if the cluster answers."""
    last_error: str = ""
    """The last error since then; empty if there is none."""
    _pending: dict[RequestId, Ms] = msgspec.field(default_factory=dict)
    """Calls that wait, in the order in which they were sent, with the time of each."""
    _renewals: dict[RequestId, Ms] = msgspec.field(default_factory=dict)
    _answered_at: Ms = Ms(0)
    _refused_since: Ms | None = None
    """When the first renewal was sent that the cluster refused, after the last accepted one."""
    _failing_since: Ms | None = None
    """When the first call was sent that ended without an answer, after the last answer."""

    def add_call(self, request_id: RequestId, request: Request, now: Ms) -> None:
        """Add a call that was sent. A worker on this machine is no cluster."""
        if not isinstance(request, RunWorker):
            is_renewal = isinstance(request, Write) and request.ref.kind == LEASE
            (self._renewals if is_renewal else self._pending)[request_id] = now

    def end_call(self, request_id: RequestId, outcome: Outcome, now: Ms) -> None:
        """Remove a call, and record whether its outcome is an answer of the cluster.

        A server that only reports internal errors, because its storage is away, does not answer.
        """
        is_renewal = request_id in self._renewals
        calls = self._renewals if is_renewal else self._pending
        sent_at = calls.pop(request_id, None)
        if sent_at is None or (isinstance(outcome, NoResponse) and outcome.reason in OUR_LOSSES):
            return
        if is_renewal and _is_refusal(outcome):
            self.last_error = sanitize(outcome.message)
            if self._refused_since is None:
                self._refused_since = sent_at
            return
        if is_renewal and not is_error(outcome):
            self._refused_since = None
        is_server_error = isinstance(outcome, ServerError) and outcome.status >= SERVER_ERROR
        if not is_error(outcome) or not (is_server_error or isinstance(outcome, NoResponse)):
            self.record_answer(now)
            return
        self.last_error = sanitize(outcome.message)
        if self._failing_since is None:
            self._failing_since = sent_at

    def record_answer(self, now: Ms) -> None:
        """Record that the cluster sent something."""
        self._answered_at, self._failing_since = now, None
        if self._refused_since is None:
            self.silent_since, self.last_error = None, ""

    @property
    def problem(self) -> str:
        """What is wrong with the cluster, if its time is up."""
        return "no answer" if self._refused_since is None else "renewal of the Lease refused"

    def update(self, now: Ms) -> None:
        """Note that the cluster does not answer, if its time is up."""
        if self.silent_since is None and (due := self._due) is not None and now >= due[0]:
            self.silent_since = due[1]

    @property
    def silent_at(self) -> Ms | None:
        """Time at which the cluster counts as silent without an answer; None if nothing waits."""
        due = self._due if self.silent_since is None else None
        return None if due is None else due[0]

    @property
    def _due(self) -> tuple[Ms, Ms] | None:
        """When the cluster counts as silent, and since when it then is."""
        answered_at, refused_since = self._answered_at, self._refused_since
        waits = [] if refused_since is None else [(refused_since, ANSWER_LIMIT)]
        waits += [
            (sent_at, limit) if sent_at >= answered_at else (answered_at, OLD_CALL_LIMIT)
            for sent_at, limit in (
                (next(iter(self._renewals.values()), None), RENEWAL_LIMIT),
                (next(iter(self._pending.values()), None), ANSWER_LIMIT),
                (self._failing_since, ANSWER_LIMIT),
            )
            if sent_at is not None
        ]
        return min(((Ms(since + limit), since) for since, limit in waits), default=None)


class ContactChange(msgspec.Struct, frozen=True):
    """A cluster that answers no more, or answers again."""

    cluster: str
    message: str = ""
    """Since when it has not answered; empty if it answers again."""
    silence: Ms = Ms(0)
    """How long it did not answer."""


class ClusterContacts:
    """Contact with all clusters of a rollout."""

    def __init__(self) -> None:
        self._contacts: dict[str, ClusterContact] = {}
        self._silent: dict[str, Ms] = {}
        """Clusters that do not answer, as reported, with the time since when."""

    def __getitem__(self, cluster: str) -> ClusterContact:
        return self._contacts.setdefault(cluster, ClusterContact())

    def update(self, now: Ms) -> None:
        """Note which clusters do not answer."""
        for contact in self._contacts.values():
            contact.update(now)

    def take_changes(self, now: Ms) -> list[ContactChange]:
        """Return the changes since the last call."""
        changes: list[ContactChange] = []
        for cluster, contact in self._contacts.items():
            since = self._silent.get(cluster)
            if contact.silent_since is not None and since is None:
                self._silent[cluster] = contact.silent_since
                changes.append(ContactChange(cluster, self._describe(cluster)))
            elif contact.silent_since is None and since is not None:
                del self._silent[cluster]
                changes.append(ContactChange(cluster, silence=Ms(now - since)))
        return changes

    @property
    def next_update(self) -> Ms | None:
        """Time of the next update at the latest; None if no call waits."""
        times = (contact.silent_at for contact in self._contacts.values())
        return min((time for time in times if time is not None), default=None)

    @property
    def silent_since(self) -> Ms | None:
        """Time since which a cluster does not answer; None if all do."""
        return min(self._silent.values(), default=None)

    def describe_silent(self) -> list[str]:
        """Return which clusters do not answer, and since when."""
        return [f"{cluster_noun(cluster)}: {self._describe(cluster)}" for cluster in self._silent]

    def _describe(self, cluster: str) -> str:
        error = self._contacts[cluster].last_error
        since, problem = format_timestamp(self._silent[cluster]), self._contacts[cluster].problem
        return f"{problem} since {since}{f' ({error})' if error else ''}"


def _is_refusal(outcome: Outcome) -> TypeGuard[ErrorOutcome]:
    """Return whether a cluster refuses a call: the user has no rights, or is not known any more."""
    is_unknown_user = isinstance(outcome, ServerError) and outcome.status == UNAUTHORIZED
    return is_unknown_user or isinstance(outcome, Forbidden)
