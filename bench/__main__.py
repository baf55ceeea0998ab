"""Run every bench, `make bench`, or those that are named: `python -m bench live_rollout`."""

from __future__ import annotations

import gc
import sys

from bench import (
    conform,
    controllers,
    diff,
    discovery,
    documents,
    engine,
    graph,
    jq,
    lint,
    live,
    live_rollout,
    lua,
    one_pass,
    preflight,
    releases,
    render,
    sandbox,
    sets,
    simulate,
    startup,
    units,
    world,
)
from tidegate.cli.main import GC_THRESHOLDS

ALL = (
    *(
        documents,
        sandbox,
        controllers,
        units,
        sets,
        simulate,
        discovery,
        render,
        lua,
        jq,
        graph,
        lint,
        diff,
    ),
    *(lint, one_pass, startup, live, live_rollout, preflight, world, engine, conform, releases),
)
BENCHES = {bench.__name__.removeprefix("bench."): bench for bench in ALL}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"there is no `{unknown[0]}`; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    gc.set_threshold(*GC_THRESHOLDS)  # as every command does
    for name in names or BENCHES:
        bench = BENCHES[name]
        print(f"{name}: {(bench.__doc__ or '').splitlines()[0]}", flush=True)
        for figure, value in bench.measure().items():
            print(f"  {figure:40} {value:10.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
