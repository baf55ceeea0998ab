"""Click commands with sections in their help, and groups that import their commands lazily."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

CLUSTER_SECTION = "Cluster options"
SIMULATION_SECTION = "Simulation options"
OPTION_SECTIONS = {
    CLUSTER_SECTION: frozenset(["sandbox", "kubeconfig", "context", "clusters"]),
    SIMULATION_SECTION: frozenset(
        ["scenario", "profile", "operator_defs", "seed", "start", "speed"]
    ),
}
"""Names of options that are printed after the options of the command itself."""
RENDERING_OPTIONS = frozenset(
    [
        *("generator_data", "name", "namespace", "values", "parameters", "string_parameters"),
        *("file_parameters", "recurse", "include", "exclude", "ignore_waves", "sync_options"),
        *("as_user", "as_groups", "ignore_differences", "offline", "maps", "load_root"),
        *("health_rules", "kube_version", "api_versions"),
    ]
)
"""Names of options that only `tidegate help rendering` prints, and `render` itself."""
RENDERING_HINT = "Options for rendering sources: see `tidegate help rendering`."


class TidegateCommand(click.Command):
    """A command whose help lists its own options first and refers to the rendering options.

    `subcommands` are called if the first argument is their name.
    """

    def __init__(
        self,
        *args: object,
        shows_rendering: bool = False,
        subcommands: Mapping[str, click.Command] | None = None,
        **attributes: object,
    ) -> None:
        super().__init__(*args, **attributes)  # type: ignore[arg-type]
        self.shows_rendering = shows_rendering
        self.subcommands = dict(subcommands or {})

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        if args and args[0] in self.subcommands:
            subcommand, *rest = args
            name = f"{info_name} {subcommand}"
            return self.subcommands[subcommand].make_context(name, rest, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section; the command's own options come first."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        hides_rendering = False
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or isinstance(parameter, click.Argument):
                continue
            if parameter.name in RENDERING_OPTIONS and not self.shows_rendering:
                hides_rendering = True
                continue
            title = next(
                (title for title, names in OPTION_SECTIONS.items() if parameter.name in names),
                "Options",
            )
            sections.setdefault(title, []).append(record)
        for title in ("Options", *OPTION_SECTIONS):
            if sections.get(title):
                with formatter.section(title):
                    formatter.write_dl(sections[title])
        if hides_rendering:
            formatter.write_paragraph()
            formatter.write_text(RENDERING_HINT)


class LazyGroup(click.Group):
    """A group that imports its commands one by one, so that its help imports none of them.

    `sections` are the short helps of the commands by title and name. Each command has a module
    in `package` that defines an object of its name.
    """

    def __init__(
        self,
        *args: object,
        package: str,
        sections: Mapping[str, Mapping[str, str]],
        hidden: Sequence[str] = (),
        **attributes: object,
    ) -> None:
        super().__init__(*args, **attributes)  # type: ignore[arg-type]
        self._package = package
        self._sections = sections
        self._names = [*(name for section in sections.values() for name in section), *hidden]

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return self._names

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._names:
            return None
        command = getattr(importlib.import_module(f"{self._package}.{name}"), name)
        if not isinstance(command, click.Command):
            raise TypeError(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or fail with the closest known name."""
        name = args[0] if args else ""
        if name and name not in self._names and not name.startswith("-"):
            from tidegate.model.text.suggest import closest_match  # noqa: PLC0415 - rarely needed

            closest = closest_match(name, self._names)
            hint = f" Did you mean '{closest}'?" if closest else ""
            ctx.fail(f"No such command '{name}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, with their short helps."""
        width = max(len(name) for name in self._names)
        for title, commands in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in commands.items()])
