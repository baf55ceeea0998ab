"""Verbs on units that are called by name or by labels, as `argocd` and `flux` call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, cast

import click
from click.decorators import FC

from tidegate.cli.completing import complete_names, complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.nouns import NOUNS, by_noun, split_source
from tidegate.cli.unit_options import Given, takes

if TYPE_CHECKING:
    from tidegate.flows.discover import Family
    from tidegate.flows.named import NamedObject

First = Callable[["list[NamedObject]", "tuple[Family, ...]", Given], int | None]
FLUX = ("kustomization", "helmrelease")
PLACE = click.option(
    "-C",
    "place",
    default=".",
    metavar="PATH",
    shell_complete=complete_path,
    help="The repository; where you stand if not given.",
)
LABELS = (
    click.option(
        "-l", "--selector", "labels", default="", help="Only those with these labels, as kubectl."
    ),
)
HOME = click.option(
    "-n", "--namespace", "home", default="", help="Only those of this namespace; else of any."
)
ALL = click.option("--all", "every", is_flag=True, help="All of them.")
OF_A_PATH = frozenset(
    [
        *("what", "units", "entry", "generator_data", "name", "namespace", "values", "parameters"),
        *("recurse", "include", "exclude", "ignore_waves", "sync_options", "ignore_differences"),
        *("revision", "chart", "kube_version", "api_versions", "string_parameters"),
        *("file_parameters", "root", "plan"),
    ]
)
"""What is said of a path, and not of a unit that has a name."""


def units_like(
    verb: click.Command,
    *,
    kinds: Sequence[str],
    told: str,
    name: str = "",
    first: First | None = None,
    more: Sequence[click.Parameter] = (),
) -> click.Command:
    """A verb on a path, as one on units of some kinds, which are called by name or by labels.

    `told`: its help. `first`: who may do it instead, and gives the exit code then; it takes `more`
    options. Where the kinds are those of sources, the units are meant that take from them.
    """
    own = [one for one in verb.params if one.name in OF_A_PATH]

    def named(
        names: tuple[str, ...], place: str, labels: str, home: str, *, every: bool, **said: object
    ) -> int:
        if sum(map(bool, (names, labels, every))) != 1:
            raise click.UsageError("give names, or -l SELECTOR, or --all")
        given = verb.make_context(verb.name, [place]).params | said
        doing = say_first(f"looking for units in {place}", quiet=given.get("output") == "json")
        families = find_families(place, cast("Given", given))
        doing.clear()
        if first is not None:
            meant = find_meant(families, kinds, names, labels, home)
            done = first(meant, families, cast("Given", given))
            if done is not None:
                return done
        given["units"] = name_units(families, names, labels, kinds, home)
        code: int = verb.callback(**given) if verb.callback else 0
        return code

    return click.Command(
        name or verb.name,
        callback=named,
        params=[
            naming_argument(kinds),
            *_naming_options(),
            *more,
            *(one for one in verb.params if one not in own),
        ],
        help=cleandoc(told),
    )


def naming_argument(kinds: Sequence[str]) -> click.Argument:
    """Names of units or sources of these kinds, which a shell can complete."""
    complete = complete_names(kinds)
    return click.Argument(["names"], nargs=-1, metavar="[NAME]...", shell_complete=complete)


def called_argument(kinds: Sequence[str]) -> Callable[[FC], FC]:
    """One such name."""
    return click.argument("called", metavar="NAME", shell_complete=complete_names(kinds))


def of_flux(verb: click.Command, told: str) -> type[click.Group]:
    """Groups with a command for each kind of Flux's units; short names are taken, too.

    `told`: their help, with a gap for the kind.
    """

    def make(noun: str) -> click.Command:
        (kind,) = NOUNS[noun]
        return units_like(verb, kinds=(kind,), told=told.format(f"{kind}s"), name=noun)

    return by_noun(make, FLUX)


def _naming_options() -> list[click.Parameter]:
    bare = takes((PLACE, HOME, *LABELS, ALL))(click.Command("bare"))
    return list(reversed(bare.params))


def find_families(place: str, told: Given) -> tuple[Family, ...]:
    """All that a repository holds."""
    # Only when a verb runs: its help must not wait for them.
    from tidegate.cli.asking import pointed_of, setting_of  # noqa: PLC0415
    from tidegate.cli.running import run  # noqa: PLC0415
    from tidegate.flows.entering import find  # noqa: PLC0415

    pointed = pointed_of(place, {**told, "units": ()})
    return run(find(pointed, setting_of(told), only_units=True)).families


def find_meant(
    families: Sequence[Family],
    kinds: Sequence[str],
    names: tuple[str, ...],
    labels: str = "",
    home: str = "",
) -> list[NamedObject]:
    """The units and sources that are meant. Raises WordsError where none is."""
    from tidegate.flows.named import find_named  # noqa: PLC0415 - only when a verb runs

    kinds, names = split_source(kinds, names)
    return find_named(families, kinds, names, labels, home)


def name_units(
    families: Sequence[Family],
    names: tuple[str, ...],
    labels: str,
    kinds: Sequence[str],
    home: str = "",
) -> tuple[str, ...]:
    """The identities of the units that are meant. Raises WordsError where nobody is.

    If all that there are is meant, none are named: so that their own objects are brought as well.
    """
    from tidegate.flows.named import takers_of  # noqa: PLC0415
    from tidegate.flows.standing import choose_units  # noqa: PLC0415
    from tidegate.flows.units import unit_rows  # noqa: PLC0415

    if kinds == NOUNS["source"]:
        meant = find_meant(families, kinds, names, labels, home)
        return takers_of([one.id for one in meant], families)
    units = [row.unit for row in unit_rows(families)]
    chosen = choose_units(units, kinds, names, labels, home)
    if not names and not labels and len(chosen) == sum(bool(one.id.kind) for one in units):
        return ()
    return tuple(str(one.id) for one in chosen)
