"""Output of the assumed or missing dependencies of a simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.cli.output import print_document, print_line
from tidegate.model.plans.missing_dependency import MissingDependency
from tidegate.report.assumptions import (
    assumption_lines,
    merge_given,
    missing_documents,
    missing_lines,
)
from tidegate.simulation.assumptions import given_for_missing


def print_assumptions(
    missing: Sequence[MissingDependency],
    *,
    empty_cluster: bool,
    is_json: bool = False,
    to_stderr: bool = False,
) -> None:
    """Print the assumptions as a scenario; if `empty_cluster`, the missing dependencies."""
    given = {} if empty_cluster else given_for_missing(missing)
    if is_json:
        documents = missing_documents(missing, given) if missing else ()
        lines = [msgspec.json.encode(document).decode() for document in documents]
    elif empty_cluster:
        lines = [*missing_lines(missing)]
    else:
        lines = [*assumption_lines(missing, merge_given(given))]
    for line in lines:
        if is_json and not to_stderr:
            print_document(line)
        else:
            print_line(line, err=to_stderr)
    if lines and not is_json:
        print_line("", err=to_stderr)
