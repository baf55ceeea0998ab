"""Commands and arguments for units that are selected by kind, name or labels.

tidegate flux suspend ks apps
tidegate flux reconcile source git platform
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, cast

import click
from click.decorators import FC

from tidegate.cli import options
from tidegate.cli.completion import complete_names, complete_path
from tidegate.cli.options import Flags, with_options
from tidegate.cli.unit_kinds import KINDS_BY_NOUN, NOUN_ALIASES, SOURCE_KINDS

if TYPE_CHECKING:
    from tidegate.model.units.unit import UnitId
    from tidegate.workspace.discovery.unit_tree import UnitTree
    from tidegate.workspace.request import UnitSelection
    from tidegate.workspace.selection import SelectedResource


CommandFactory = Callable[[str], click.Command]


def noun_group(
    make_command: CommandFactory, nouns: Sequence[str] = tuple(KINDS_BY_NOUN)
) -> type[click.Group]:
    """Return a group class with a command for each noun and its aliases."""

    class NounGroup(click.Group):
        def list_commands(self, _ctx: click.Context) -> list[str]:
            return [*nouns]

        def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
            noun = NOUN_ALIASES.get(name, name)
            return make_command(noun) if noun in nouns else None

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            argument = args[0] if args else ""
            if (
                argument
                and not argument.startswith("-")
                and self.get_command(ctx, argument) is None
            ):
                ctx.fail(unknown_noun_message(argument, nouns))
            return super().resolve_command(ctx, args)

    return NounGroup


def unknown_noun_message(argument: str, nouns: Sequence[str]) -> str:
    """Return the message for an unknown noun."""
    from tidegate.model.text.suggest import closest_match  # noqa: PLC0415 - rarely needed

    names = [*nouns, *(short for short, noun in NOUN_ALIASES.items() if noun in nouns)]
    closest = closest_match(argument, names)
    hint = f" Did you mean '{closest}'?" if closest else f" Use {', '.join(nouns)}."
    return f"No such kind '{argument}'.{hint}"


def split_source_kind(
    kinds: Sequence[str], names: tuple[str, ...]
) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return kinds and names; `source git NAME` selects one kind of source."""
    if len(names) > 1 and SOURCE_KINDS.get(names[0]) in kinds:
        return (SOURCE_KINDS[names[0]],), names[1:]
    return kinds, names


Delegate = Callable[["UnitSelection", Flags], int | None]
FLUX_NOUNS = ("kustomization", "helmrelease")
REPOSITORY = click.option(
    "-C",
    "path",
    default=".",
    metavar="PATH",
    shell_complete=complete_path,
    help="Path of the repository. Default: the current directory.",
)
SELECTOR = (
    click.option(
        "-l",
        "--selector",
        "labels",
        default="",
        metavar="LABELS",
        help="Select by labels, like kubectl.",
    ),
)
NAMESPACE_FILTER = options.namespace_filter("Select only objects of this namespace.")
ALL = click.option("--all", "every", is_flag=True, help="Select all.")
PATH_PARAMETERS = frozenset(
    [
        *(
            "path",
            "paths",
            "units",
            "root_unit",
            "generator_data",
            "name",
            "namespace",
            "values",
            "parameters",
        ),
        *("recurse", "include", "exclude", "ignore_waves", "sync_options", "ignore_differences"),
        *("revision", "chart", "kube_version", "api_versions", "string_parameters"),
        *("file_parameters", "load_root", "plan"),
    ]
)
"""Parameters that belong to a path, not to a named unit."""


def command_for_units(
    command: click.Command,
    *,
    kinds: Sequence[str],
    help_text: str,
    name: str = "",
    delegate: Delegate | None = None,
    extra_options: Sequence[click.Parameter] = (),
) -> click.Command:
    """Return a command on a path as a command on units, selected by name or labels.

    `delegate` may handle the units instead and return the exit code; it gets the
    `extra_options`. For source kinds, the units that use the sources are selected.
    """
    path_parameters = [
        parameter for parameter in command.params if parameter.name in PATH_PARAMETERS
    ]

    def callback(
        names: tuple[str, ...],
        path: str,
        labels: str,
        namespace_filter: str,
        *,
        every: bool,
        **values: object,
    ) -> int:
        if sum(map(bool, (names, labels, every))) != 1:
            raise click.UsageError("give names, -l SELECTOR or --all")
        params = command.make_context(command.name, [path]).params | values
        params["selection"] = unit_selection(kinds, names, labels, namespace_filter)
        if delegate is not None:
            exit_code = delegate(params["selection"], cast("Flags", params))
            if exit_code is not None:
                return exit_code
        command_code: int = command.callback(**params) if command.callback else 0
        return command_code

    return click.Command(
        name or command.name,
        callback=callback,
        params=[
            names_argument(kinds),
            *_selection_options(),
            *extra_options,
            *(parameter for parameter in command.params if parameter not in path_parameters),
        ],
        help=cleandoc(help_text),
    )


def names_argument(kinds: Sequence[str]) -> click.Argument:
    """Return an argument for names of units or sources, with shell completion."""
    complete = complete_names(kinds)
    return click.Argument(["names"], nargs=-1, metavar="[NAME]...", shell_complete=complete)


def name_argument(kinds: Sequence[str]) -> Callable[[FC], FC]:
    """Return a decorator for one such name."""
    return click.argument("called", metavar="NAME", shell_complete=complete_names(kinds))


def flux_group(command: click.Command, help_template: str) -> type[click.Group]:
    """Return a group class with a command for each Flux unit kind; short names are accepted.

    `help_template` is the help with a placeholder for the kind.
    """

    def make_command(noun: str) -> click.Command:
        (kind,) = KINDS_BY_NOUN[noun]
        return command_for_units(
            command, kinds=(kind,), help_text=help_template.format(f"{kind}s"), name=noun
        )

    return noun_group(make_command, FLUX_NOUNS)


def _selection_options() -> list[click.Parameter]:
    bare = with_options((REPOSITORY, NAMESPACE_FILTER, *SELECTOR, ALL))(click.Command("bare"))
    return list(reversed(bare.params))


async def load_units(path: str, flags: Flags) -> tuple[UnitTree, ...]:
    """Return all unit trees of a repository, for a command that needs no objects of units."""
    # Only when a command runs: its help must not wait for these imports.
    from tidegate.cli.requests import load_request, render_settings  # noqa: PLC0415
    from tidegate.workspace.workspace import load_without_cluster  # noqa: PLC0415

    request = load_request(path, {**flags, "units": ()})
    workspace = await load_without_cluster(request, render_settings(flags), only_units=True)
    return workspace.repository_trees


def load_unit_trees(path: str, flags: Flags) -> tuple[UnitTree, ...]:
    """Return all unit trees of a repository, where no event loop runs yet."""
    from tidegate.cli.run_async import run_async  # noqa: PLC0415 - only when a command runs

    return run_async(load_units(path, flags))


def unit_selection(
    kinds: Sequence[str], names: tuple[str, ...], labels: str = "", namespace: str = ""
) -> UnitSelection:
    """Return the selection of units; `source git NAME` selects one kind of source."""
    from tidegate.workspace.request import UnitSelection  # noqa: PLC0415 - only when a command runs

    kinds, names = split_source_kind(kinds, names)
    return UnitSelection(kinds=tuple(kinds), names=names, labels=labels, namespace=namespace)


def find_resources(
    unit_trees: Sequence[UnitTree],
    kinds: Sequence[str],
    names: tuple[str, ...],
    labels: str = "",
    namespace: str = "",
) -> list[SelectedResource]:
    """Return the selected units and sources. Raises UsageError if there are none."""
    from tidegate.workspace.selection import select_resources  # noqa: PLC0415 - only when a command runs

    return select_resources(unit_trees, unit_selection(kinds, names, labels, namespace))


def split_unit_argument(argument: str, default_kinds: Sequence[str]) -> tuple[Sequence[str], str]:
    """Return the kinds and the name in an argument such as `ks/apps` or `apps`."""
    prefix, separator, name = argument.partition("/")
    noun = NOUN_ALIASES.get(prefix, prefix)
    if separator and noun in KINDS_BY_NOUN:
        return KINDS_BY_NOUN[noun], name
    return default_kinds, argument


def find_unit_ids(
    arguments: Sequence[str], unit_trees: Sequence[UnitTree], namespace: str = ""
) -> tuple[UnitId, ...]:
    """Return the units that the arguments name; all of them without arguments.

    Raises UsageError if a name is unknown or ambiguous.
    """
    from tidegate.workspace.selection import select_units, unit_rows  # noqa: PLC0415

    units = [row.unit for row in unit_rows(unit_trees)]
    if not arguments:
        return tuple(unit.id for unit in units)
    all_kinds = tuple(dict.fromkeys(unit.id.kind for unit in units))
    selected: dict[UnitId, None] = {}
    for argument in arguments:
        kinds, name = split_unit_argument(argument, all_kinds)
        selection = unit_selection(kinds, (name,), namespace=namespace)
        for unit in select_units(units, selection):
            selected[unit.id] = None
    return tuple(selected)
