"""Pick tags with a stranger's regular expression, in a process that can be ended.

Python's expressions can be made to run for ever, and both the expression and the tags are foreign.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from tidegate.errors import ProcessError, SourceError, foreign
from tidegate.external.process import Command, Limits, run
from tidegate.model.moment import SECOND, Ms

PATIENCE = Ms(5 * SECOND)
NOT_AN_EXPRESSION = 3
SCRIPT = f"""
import json, re, sys
text, tags = json.load(sys.stdin)
try:
    shape = re.compile(text)
except re.error:
    sys.exit({NOT_AN_EXPRESSION})
json.dump([tag for tag in tags if shape.search(tag)], sys.stdout)
"""


async def filter_tags(text: str, tags: Sequence[str]) -> list[str]:
    """The tags in which the expression is found."""
    command = Command(
        argv=(sys.executable, "-I", "-S", "-c", SCRIPT),
        stdin=msgspec.json.encode([text, tags]),
        accepts=frozenset({0, NOT_AN_EXPRESSION}),
    )
    try:
        ran = await run(command, limits=Limits(time=PATIENCE))
    except ProcessError as error:
        raise _unusable(text, "takes too long") from error
    if ran.code:
        raise _unusable(text, "is not a regular expression")
    return msgspec.json.decode(ran.stdout, type=list[str])


def _unusable(text: str, reason: str) -> SourceError:
    return SourceError("source.oci.filter", f"the filter `{foreign(text)}` {reason}")
