"""Commands and arguments for units that are selected by kind, name or labels.

tidegate suspend ks apps
tidegate reconcile source git platform
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

SOURCE_KINDS = {
    "git": "GitRepository",
    "oci": "OCIRepository",
    "helm": "HelmRepository",
    "chart": "HelmChart",
    "bucket": "Bucket",
}
KINDS_BY_NOUN = {
    "application": ("Application",),
    "helmrelease": ("HelmRelease",),
    "kustomization": ("Kustomization",),
    "source": tuple(SOURCE_KINDS.values()),
}
UNIT_KINDS_BY_NOUN = {noun: kinds for noun, kinds in KINDS_BY_NOUN.items() if noun != "source"}
UNIT_KINDS = tuple(kind for kinds in UNIT_KINDS_BY_NOUN.values() for kind in kinds)
"""Kinds of unit resources."""
NOUN_ALIASES = {
    "app": "application",
    "apps": "application",
    "applications": "application",
    "hr": "helmrelease",
    "helmreleases": "helmrelease",
    "ks": "kustomization",
    "kustomizations": "kustomization",
    "sources": "source",
    "gitrepo": "source",
    "gitrepository": "source",
}
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
    from difflib import get_close_matches  # noqa: PLC0415 - only for who misspells

    names = [*nouns, *(short for short, noun in NOUN_ALIASES.items() if noun in nouns)]
    matches = get_close_matches(argument, names, n=1)
    hint = f" Did you mean '{matches[0]}'?" if matches else f" There are {', '.join(nouns)}."
    return f"No such kind '{argument}'.{hint}"


def split_source_kind(
    kinds: Sequence[str], names: tuple[str, ...]
) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return kinds and names; `source git NAME` selects one kind of source."""
    if len(names) > 1 and SOURCE_KINDS.get(names[0]) in kinds:
        return (SOURCE_KINDS[names[0]],), names[1:]
    return kinds, names
