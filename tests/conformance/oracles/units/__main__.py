"""Build the oracles, ask them for every unit of every repository, keep their answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.oracles.units.queries import Oracle, kept
from tests.conformance.oracles.units.tools import build, find_tools
from tests.conformance.oracles.units.walk import walk
from tests.support.expected_units import RECORDED, shapes


@contextmanager
def oracles() -> Iterator[dict[str, Oracle]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        path = find_tools()
        argo, flux = build("argo", folder), build("flux", folder)
        sets = build("../sets", folder)
        of_flux = stack.enter_context(Oracle(flux, path))
        yield {
            "ApplicationSet": stack.enter_context(Oracle(sets, path)),
            "Application": stack.enter_context(Oracle(argo, path)),
            "Kustomization": of_flux,
            "HelmRelease": of_flux,
        }


def main(expected: list[str]) -> int:
    surprises = 0
    with oracles() as request:
        for shape in expected or shapes():
            folder = RECORDED / shape
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("*.json"):
                old.unlink()
            for unit, answer in walk(shape, request):
                if answer.error:
                    surprises += not unit.unknown
                    mark = " " if unit.unknown else "!"
                    sys.stdout.write(f"{mark} {shape} {unit.id}: {answer.error}\n")
                else:
                    (folder / unit.record).write_text(kept(answer.objects))
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
