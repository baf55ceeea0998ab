"""What a simulated cluster was taken to have, or lacks, on standard output."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.cli.saying import hand_out, say
from tidegate.flows.assuming import assume
from tidegate.model.absence import Absence
from tidegate.report.assumed import absence_documents, absent_lines, all_given, assumed_lines


def show_absences(
    absences: Sequence[Absence], *, greenfield: bool, json: bool = False, aside: bool = False
) -> None:
    """What was assumed, as a scenario; with `greenfield` all that is missing, as a list.

    `aside`: beside the output, which is something else.
    """
    given = {} if greenfield else assume(absences)
    if json:
        documents = absence_documents(absences, given) if absences else ()
        lines = [msgspec.json.encode(one).decode() for one in documents]
    elif greenfield:
        lines = [*absent_lines(absences)]
    else:
        lines = [*assumed_lines(absences, all_given(given))]
    for line in lines:
        if json and not aside:
            hand_out(line)
        else:
            say(line, err=aside)
    if lines and not json:
        say("", err=aside)
