"""The order in which values are merged: Argo CD's and Flux's. They differ.

Argo CD calls `helm template`: files, then the inline values as one more file, then `--set`, then
`--set-string`, then `--set-file`, whatever order the manifest has them in. Flux merges by itself:
each reference in turn, the inline values last, and a `targetPath` on top of what there is then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from tidegate.model.release import (
    FileParameter,
    How,
    Inline,
    Layer,
    Parameter,
    ValuesFile,
    ValuesText,
)
from tidegate.render.argo_build import expand

_BARE_COMMA = re.compile(r"(?<!\\),")


class Reference(msgspec.Struct, frozen=True, gc=False):
    """An entry of `valuesFrom` that has been read: the text, and what it was called."""

    text: str
    name: str
    target_path: str = ""
    literal: bool = False

    def __repr__(self) -> str:
        return f"Reference({self.name})"


def argo_layers(
    files: Iterable[ValuesFile | ValuesText] = (),
    *,
    text: str = "",
    parameters: Iterable[Parameter] = (),
    file_parameters: Iterable[FileParameter] = (),
    variables: Mapping[str, str] | None = None,
) -> tuple[Layer, ...]:
    """`helm.valueFiles`, `values`, `parameters` and `fileParameters` of an Argo CD source.

    `valuesObject` is the release's own `values`; it takes the place of `text`, so give one of the
    two. Of parameters with the same name and kind the last counts. Where `variables` are given,
    values of parameters may name them.
    """
    ordered: list[Layer] = [*files]
    parameters = tuple(parameters)
    if text:
        ordered.append(ValuesText(text, "helm.values", is_file=True))
    ordered.append(Inline())
    for how in (How.TYPED, How.STRING):
        chosen = {each.name: each for each in parameters if each.how is how}
        for each in chosen.values():
            value = each.value if variables is None else expand(each.value, variables)
            ordered.append(Parameter(each.name, _escape(value), how))
    ordered += {each.name: each for each in file_parameters}.values()
    return tuple(ordered)


def _escape(value: str) -> str:
    """A comma does not end a value in Argo CD, unless the value is a list in braces."""
    if value.startswith("{") and value.endswith("}"):
        return value
    return _BARE_COMMA.sub(r"\\,", value)


def flux_layers(references: Iterable[Reference] = ()) -> tuple[Layer, ...]:
    """`valuesFrom` of a HelmRelease, with its `values` where Flux merges them.

    Flux merges the inline values before each `targetPath` and once more at the end. So a
    `targetPath` beats an inline value of the same name only inside a mapping that no earlier
    reference has: that is what Flux does, whatever its documents say.
    """
    ordered: list[Layer] = []
    for each in references:
        if each.target_path:
            ordered += (Inline(), _target(each))
        else:
            ordered.append(ValuesText(each.text, each.name))
    return (*ordered, Inline())


def _target(reference: Reference) -> Parameter:
    text = reference.text
    if reference.literal:
        return Parameter(reference.target_path, text, How.LITERAL)
    for quote in ("'", '"'):
        if text.startswith(quote) and text.endswith(quote):
            return Parameter(reference.target_path, text.strip("'\""), How.STRING)
    return Parameter(reference.target_path, text)
