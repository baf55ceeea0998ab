"""Exit codes and their meanings."""

from __future__ import annotations

EXIT_CODE_MEANINGS = {
    0: "it went well; of a rollout: it passed, or there was nothing to do",
    1: "a bug in Tidegate",
    2: "the command line is wrong",
    3: "what was read is wrong or not all of it could be had, or a finding is an error;"
    " no real cluster was written to",
    4: "a gate did not open, or something did not come up",
    5: "the cluster does not answer, or says no",
    6: "the rollout gave way to another one of the same unit",
    7: "a reader has gone, a disk is full, or the machine has no files or memory left",
    8: "`--timeout` was over, or a program that was asked did not come to an end",
    10: "there is something to do, with `plan --exit-code`",
    130: "somebody stopped it: Ctrl-C, or its terminal was closed",
}
