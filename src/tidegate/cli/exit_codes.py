"""Exit codes and their meanings."""

from __future__ import annotations

EXIT_CODE_MEANINGS = {
    0: "success; a rollout passed or had nothing to do",
    1: "a bug in Tidegate",
    2: "invalid command line",
    3: "invalid or incomplete input, or a finding with severity error; nothing was written to a"
    " real cluster",
    4: "a gate did not open, or an object did not become healthy",
    5: "the cluster is unreachable or refuses access",
    6: "superseded by another rollout of the same unit",
    7: "standard output closed, disk full, or out of memory or file handles",
    8: "timeout of the command or of an external program",
    9: "incomplete, without an error: `lint` checked only a part, or `simulate` skipped units;"
    " `--allow-incomplete` turns this off",
    10: "`plan --exit-code` found changes, or `diff --exit-code` a different order",
    130: "interrupted: Ctrl-C, or the terminal was closed",
}
