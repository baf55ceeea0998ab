"""Verbs whose first word says what is meant: a kustomization, a helmrelease, a source, an app.

tidegate suspend ks apps
tidegate reconcile source git platform
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

SOURCE_WORDS = {
    "git": "GitRepository",
    "oci": "OCIRepository",
    "helm": "HelmRepository",
    "chart": "HelmChart",
    "bucket": "Bucket",
}
NOUNS = {
    "application": ("Application",),
    "helmrelease": ("HelmRelease",),
    "kustomization": ("Kustomization",),
    "source": tuple(SOURCE_WORDS.values()),
}
UNIT_NOUNS = {noun: kinds for noun, kinds in NOUNS.items() if noun != "source"}
UNITS = tuple(kind for kinds in UNIT_NOUNS.values() for kind in kinds)
"""The kinds of units that have an object of their own."""
ALIASES = {
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
Make = Callable[[str], click.Command]


def by_noun(make: Make, nouns: Sequence[str] = tuple(NOUNS)) -> type[click.Group]:
    """Groups with a command for each of these nouns; short names and plurals are taken, too."""

    class NounVerbs(click.Group):
        def list_commands(self, _ctx: click.Context) -> list[str]:
            return [*nouns]

        def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
            noun = ALIASES.get(name, name)
            return make(noun) if noun in nouns else None

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            word = args[0] if args else ""
            if word and not word.startswith("-") and self.get_command(ctx, word) is None:
                ctx.fail(no_noun(word, nouns))
            return super().resolve_command(ctx, args)

    return NounVerbs


def no_noun(word: str, nouns: Sequence[str]) -> str:
    """What is said of a word that is none of these."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for who misspells

    known = [*nouns, *(short for short, noun in ALIASES.items() if noun in nouns)]
    near = get_close_matches(word, known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else f" There are {', '.join(nouns)}."
    return f"No such kind '{word}'.{hint}"


def split_source(
    kinds: Sequence[str], names: tuple[str, ...]
) -> tuple[Sequence[str], tuple[str, ...]]:
    """The kinds that are meant, and the names; `source git NAME` says which kind of source."""
    if len(names) > 1 and SOURCE_WORDS.get(names[0]) in kinds:
        return (SOURCE_WORDS[names[0]],), names[1:]
    return kinds, names
