"""Amounts, durations, lists and messages as users read them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from tidegate.errors import sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import HOUR, MINUTE, SECOND, Ms

TENTHS_LIMIT = Ms(10 * SECOND)
"""Below this limit a running duration is shown with tenths of a second."""
WAIT_PREFIXES = ("Waiting for rollout to finish: ", "Waiting for ")
_UNREADY_PODS = lazy_regex(r"(?P<count>\d+) pods to be ready")
_CREATE_ERROR = lazy_regex(r'Error creating: (?:pods "[^"]*" is forbidden: )?')
_WEBHOOK_DENIAL = lazy_regex(r'admission webhook "(?P<name>[^"]+)" denied the request: (?P<why>.*)')


def count_noun(amount: int, singular: str) -> str:
    """Return an amount with its noun: `1 object`, `1,200 objects`."""
    return f"{amount:,} {singular}" if amount == 1 else f"{amount:,} {singular}s"


def cluster_noun(name: str) -> str:
    """Return how a message names a cluster; an empty name is that of the only one."""
    return f"cluster {name}" if name else "the cluster"


def format_seconds(duration: int) -> str:
    """Format a finished duration: `0.1s`, `102.0s`."""
    return f"{duration / SECOND:.1f}s"


def format_running(duration: int) -> str:
    """Format a growing duration: `3.2s`, `42s`, `1m42s`, `2h05m`."""
    if duration < TENTHS_LIMIT:
        return f"{max(0, duration) / SECOND:.1f}s"
    if duration < MINUTE:
        return f"{duration // SECOND}s"
    if duration < HOUR:
        return f"{duration // MINUTE}m{duration % MINUTE // SECOND:02}s"
    return f"{duration // HOUR}h{duration % HOUR // MINUTE:02}m"


def format_limit(duration: int) -> str:
    """Format a time limit: `10m`, `90s`, `1m30s`."""
    if duration >= MINUTE and duration % MINUTE < SECOND:
        return f"{duration // MINUTE}m" if duration < HOUR else format_running(duration)
    return format_running(duration)


def shorten_cause(cause: str) -> str:
    """Return a cause with its decisive part first, for rows with little space."""
    text = _CREATE_ERROR.sub("", cause)
    return _WEBHOOK_DENIAL.sub(r"denied by a webhook: \g<why> (\g<name>)", text)


def shorten_wait_message(message: str) -> str:
    """Return the message of a wait without its prefix: `2 pods are not ready`."""
    for prefix in WAIT_PREFIXES:
        if message.startswith(prefix):
            message = message.removeprefix(prefix)
            break
    message = message.removesuffix("...")
    if unready := _UNREADY_PODS.fullmatch(message):
        count = int(unready["count"])
        return f"{count_noun(count, 'pod')} {'is' if count == 1 else 'are'} not ready"
    return message


def join_limited(names: Collection[object], limit: int = 3) -> str:
    """Join the first names, and add how many more there are: `a, b, c and 2 more`."""
    shown = ", ".join(map(str, islice(names, limit)))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def join_quoted(names: Collection[object], limit: int = 3) -> str:
    """Join the first names like `join_limited`, each in backticks."""
    return join_limited([f"`{sanitize(str(name))}`" for name in names], limit)
