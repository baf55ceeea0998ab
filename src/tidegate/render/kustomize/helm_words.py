"""Reads the arguments with which kustomize calls helm."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.errors import Place, RenderError, foreign
from tidegate.model.release import DEFAULT_KUBE_VERSION, Inline, Release, ValuesFile
from tidegate.render.helm.manifest import Printing

WITH_A_VALUE = frozenset({"--namespace", "--name-template", "-f", "--api-versions"}) | {
    "--kube-version"
}
ALONE = frozenset({"--include-crds", "--skip-tests", "--no-hooks", "--generate-name"}) | {
    "--debug",
    "--devel",
}


class Asked(msgspec.Struct, frozen=True):
    """One call of `helm template`."""

    release: Release
    printing: Printing


def read_words(words: list[str], scratch: Path) -> Asked:
    """What a call asks for. All paths in it lie below the directory of the build."""
    command, *rest = words
    if command != "template":
        problem = f"kustomize asks for `helm {foreign(command)}`, and charts are only rendered here"
        raise RenderError("render.kustomize.helm", problem, where=Place("."))
    named, options = _sorted(rest)
    chart = _inside(named[-1] if named else "", scratch)
    files = tuple(ValuesFile(f"/{_inside(path, scratch)}") for path in options.get("-f", ()))
    release = Release(
        root=str(scratch),
        chart=chart,
        name=_name(named[:-1], options, chart),
        namespace=_last(options, "--namespace") or "default",
        layers=(*files, Inline()),
        kube_version=_last(options, "--kube-version") or DEFAULT_KUBE_VERSION,
        api_versions=tuple(options.get("--api-versions", ())),
        include_crds="--include-crds" in options,
        repositories=(),
        builds_dependencies=False,
    )
    hooks, tests = "--no-hooks" not in options, "--skip-tests" not in options
    return Asked(release, Printing(hooks=hooks, tests=tests))


def _sorted(words: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """What stands by itself, and the values of each option."""
    named: list[str] = []
    options: dict[str, list[str]] = {}
    left = iter(words)
    for word in left:
        if word in WITH_A_VALUE:
            options.setdefault(word, []).append(next(left, ""))
        elif word in ALONE:
            options[word] = []
        elif word.startswith("-"):
            problem = f"kustomize calls helm with `{foreign(word)}`, which is not known here"
            raise RenderError("render.kustomize.helm", problem, where=Place("."))
        else:
            named.append(word)
    return named, options


def _name(named: list[str], options: dict[str, list[str]], chart: str) -> str:
    """The name of the release. Helm would make one up of the clock; ours stays the same."""
    pattern = _last(options, "--name-template")
    if pattern and (named or "{{" in pattern):
        problem = "the `nameTemplate` of a chart is not evaluated here"
        hint = "write the name as `releaseName`"
        raise RenderError("render.kustomize.helm", problem, where=_place(chart), hint=hint)
    made_up = f"{Path(chart).name.partition('.')[0]}-0"
    return pattern or (named[0] if named else made_up)


def _last(options: dict[str, list[str]], name: str) -> str:
    return options.get(name, [""])[-1]


def _inside(path: str, scratch: Path) -> str:
    return os.path.relpath(path, scratch)


def _place(chart: str) -> Place:
    return Place(chart.partition("/")[2] or ".")
