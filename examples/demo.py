"""What works today, shown: `make demo`.

Plays a migration that starts before its database, on a simulated cluster. Reads a file as
Kubernetes would. Then, where a control plane has been built (`make kube-up`), lets the door keep
its promises on a real API server.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from plane import ControlPlane, PlaneError
from tidegate.documents import find_places, read
from tidegate.documents.dump import to_json
from tidegate.model.objects import Json, Kind
from tidegate.testing import Body, Desk, live_of, real_world
from tidegate.world.calls import Selection
from tidegate.world.facts import Changed, Conflict, Fact
from tidegate.world.line import Line

SURPRISES = Path(__file__).with_name("surprises.yaml")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
NAME = "examples/surprises.yaml"


def show_migration() -> None:
    """Part one: a Job that dials a database which is not ready yet."""
    folder = Path(__file__).with_name("migration").relative_to(Path.cwd())
    command = ["sandbox", "run", f"{folder}/shop.yaml", "--until", "3m"]
    command += ["--scenario", f"{folder}/slow-database.yaml", "--kind", "Job", "--kind", "Pod"]
    print("$ tidegate", *command, flush=True)
    subprocess.run([sys.executable, "-m", "tidegate", *command], check=True)


def show_reading() -> None:
    """Part two: what Kubernetes makes of a file, line by line."""
    text = SURPRISES.read_bytes()
    (document,) = read(text, NAME)
    spec = document.body["spec"]
    fields = spec if isinstance(spec, dict) else {}
    places = find_places(text, [(document, ("spec", key)) for key in fields])
    lines = text.decode().splitlines()

    print(f"{NAME}, as Kubernetes reads it:")
    print()
    for (_, value), place in zip(fields.items(), places, strict=True):
        print(f"  {place.line:2}  {lines[place.line - 1].strip():32} {to_json(value).decode()}")
    print()
    for twice in document.duplicates:
        key = ".".join(map(str, twice.path))
        print(f"  `{key}` is written twice, on lines {twice.first.line} and {twice.last.line}:")
        print("  the last one wins")


def a_config_map(**data: str) -> Body:
    values: dict[str, Json] = {**data}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web"},
        "data": values,
    }


async def show_ownership(desk: Desk) -> None:
    first = live_of(await desk.apply(a_config_map(color="blue"), manager="ann"))
    print(f"  ann applies color=blue             it is there, version {first.version}")
    again = live_of(await desk.apply(a_config_map(color="blue"), manager="ann"))
    same = "nothing was written" if again.version == first.version else "a new version"
    print(f"  ann applies the same again         {same}, version {again.version}")
    theirs = await desk.apply(a_config_map(color="red"), manager="bob")
    owners = ", ".join(
        f"{owned.manager} owns {owned.field}"
        for owned in (theirs.managers if isinstance(theirs, Conflict) else ())
    )
    print(f"  bob applies color=red              refused: {owners}")
    await desk.delete(first.ref)
    await desk.apply(a_config_map(color="green"))
    late = await desk.delete(first.ref, uid=first.uid)
    kept = "refused: this is another life of it" if isinstance(late, Conflict) else "deleted"
    print(f"  a late deletion of the first one   {kept}")


async def show_endurance(desk: Desk, plane: ControlPlane) -> None:
    def heard(fact: Fact) -> bool:
        return isinstance(fact, Changed) and b"yellow" in fact.live.body

    desk.watch(Selection(CONFIG_MAP, desk.namespace))
    plane.kill("apiserver")
    print("  the API server is killed           a watch is open")
    plane.revive("apiserver")
    live_of(await desk.apply(a_config_map(color="yellow")))
    await desk.until(heard)
    print("  it comes back                      the apply is done, the watch has told of it")


async def show_promises(plane: ControlPlane) -> None:
    """Part three: the door at work."""
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        desk = Desk(Line(world), namespace="demo")
        await desk.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}})
        await show_ownership(desk)
        await show_endurance(desk, plane)


def main() -> None:
    show_migration()
    print()
    show_reading()
    print()
    try:
        plane = ControlPlane.start()
    except PlaneError as error:
        if error.code != "plane.unbuilt":
            raise
        print("To see the promises at work on a real Kubernetes: `make kube-up`, which builds one")
        print("the first time (about 10 minutes), then `make demo` again.")
        return
    with plane:
        print("On a real Kubernetes, started for this:")
        print()
        asyncio.run(show_promises(plane))


if __name__ == "__main__":
    main()
