"""Run every bench: `make bench`."""

from __future__ import annotations

from bench import documents, door, engine, living, lua, render, sandbox

if __name__ == "__main__":
    for bench in (documents, sandbox, living, render, lua, door, engine):
        print((bench.__doc__ or "").splitlines()[0])
        for name, value in bench.measure().items():
            print(f"  {name:40} {value:10.2f}")
