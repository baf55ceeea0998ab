"""Run the benches of the engine: `python -m bench.engine`."""

from __future__ import annotations

from bench import engine

if __name__ == "__main__":
    for name, value in engine.measure().items():
        print(f"{name:40} {value:10.2f}", flush=True)
