"""Many Go templates with many sets of parameters, as an ApplicationSet has them.

    texts = await render_texts(("{{ .name | slugify }}",), ({"name": "Web"},), workers)

The Helm SDK has the same language and the same functions. What Argo CD adds is put in other words
here, and what only Helm has is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from tidegate.documents.decoder import format_suggestion
from tidegate.errors import ProcessError, RenderError, sanitize
from tidegate.external.worker import Workers
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import GoTemplateRequest
from tidegate.render.workers import WorkerError

STRICT = "missingkey=error"
ZERO = "missingkey=zero"
LENIENT = ("missingkey=default", "missingkey=invalid", ZERO)
NORMALIZE, SLUGIFY = "normalize", "slugify"
RENAMED = {"fromJson": "mustFromJson", NORMALIZE: f'include "tidegate.{NORMALIZE}"'}
FOREIGN = frozenset(
    [
        "env",
        "expandenv",
        "getHostByName",
        "include",
        "tpl",
        "required",
        "lookup",
        "toToml",
        "fromToml",
        "mustToToml",
        "toYamlPretty",
        "mustToYaml",
        "fromJsonArray",
    ]
)
"""Functions that Argo CD does not have."""
_OWN = lazy_regex(r"(?:.*/)?templates/_(\d+)\.tpl")
MISSING = lazy_regex("map has no entry for key|nil data; no entry for key|can't evaluate field")
_ACTION = lazy_regex(
    r"(\{\{-?\s*/\*.*?\*/\s*-?\}\})"
    r"""|\{\{((?>"(?:\\.|[^"\\])*"|`[^`]*`|(?!\s-\}\}|\}\}).)*)(?:\s-)?\}\}""",
    re.DOTALL,
)
_TOKEN = lazy_regex(
    r"""(?P<text>"(?:\\.|[^"\\])*"|`[^`]*`|'(?:\\.|[^'\\])*')|(?P<name>[.$]?[A-Za-z_][\w.]*)"""
    r"""|(?P<ends>[|)])|(?P<opens>\()|(?P<other>.)""",
    re.DOTALL,
)
_CHAIN = lazy_regex(r"(?P<root>\$\w+)?(?P<keys>(?:\.\w+){2,})")
"""A field of a field: of what is at hand, of a variable, or of `$`, which is a token of its own."""
_encode = msgspec.json.Encoder().encode
Params: TypeAlias = Mapping[str, object]
Rows: TypeAlias = tuple[tuple[str, ...], ...]
_decode: Callable[[bytes], Rows | WorkerError] = msgspec.json.Decoder(Rows | WorkerError).decode


class GoTextError(RenderError):
    """One of the templates cannot be rendered."""

    def __init__(self, text: str, problem: str, hint: str = "") -> None:
        super().__init__("render.template", problem, hint=hint)
        self.text = text


async def render_texts(
    texts: Sequence[str],
    params: Sequence[Params],
    workers: Workers,
    options: Sequence[str] = (),
    *,
    lenient: bool = False,
) -> Rows:
    """For each set of parameters what the templates come to.

    Raises a GoTextError for the first that cannot be rendered. If `lenient`, one that names a
    parameter which is not there is given back as it is.
    """
    strict, zero = _is_strict(options), bool(options) and options[-1] == ZERO
    asked = GoTemplateRequest(
        tuple(_translated(text, patient=not (strict or zero)) for text in texts),
        tuple(map(dict, params)),
        strict=strict,
    )
    try:
        return await _ask(asked, texts, workers)
    except RenderError as error:
        if not lenient or not MISSING.search(error.problem):
            raise
    return tuple([await _one_by_one(asked, row, texts, workers) for row in asked.params])


async def _one_by_one(
    asked: GoTemplateRequest, params: Params, texts: Sequence[str], workers: Workers
) -> tuple[str, ...]:
    made = []
    for text, written in zip(asked.texts, texts, strict=True):
        one = msgspec.structs.replace(asked, texts=(text,), params=(dict(params),))
        try:
            made.append((await _ask(one, (written,), workers))[0][0])
        except RenderError as error:
            if not MISSING.search(error.problem):
                raise
            made.append(written)
    return tuple(made)


async def _ask(asked: GoTemplateRequest, written: Sequence[str], workers: Workers) -> Rows:
    try:
        answer = _decode(await workers.request(_encode(asked)))
    except ProcessError as error:
        problem = f"the templates cannot be rendered: {error.problem}"
        raise RenderError("render.template", problem, hint=error.hint) from error
    if isinstance(answer, WorkerError):
        found = _OWN.fullmatch(answer.location.name) if answer.location else None
        if found is None:
            raise _refused(answer.problem, "")
        text = written[int(found[1])]
        raise GoTextError(text, f"`{sanitize(text)}`: {answer.problem}")
    return answer


def _is_strict(options: Sequence[str]) -> bool:
    for one in options:
        if one != STRICT and one not in LENIENT:
            hint = format_suggestion(one, (STRICT, *LENIENT))
            raise _refused(f"there is no option `{sanitize(one)}` for templates", hint)
    return bool(options) and options[-1] == STRICT


def _translated(text: str, *, patient: bool) -> str:
    try:
        return translate(text, patient=patient)
    except RenderError as error:
        raise GoTextError(text, error.problem, error.hint) from None


def translate(text: str, *, patient: bool = False) -> str:
    """The template in words that the SDK knows. Raises a RenderError for what Argo CD refuses.

    `patient`: a field of what is not there is not there either.
    """
    return _ACTION.sub(partial(_action, patient), text)


def _action(patient: bool, found: re.Match[str]) -> str:  # noqa: FBT001 - one of two
    whole, inner = found[0], found[2]
    if inner is None:
        return whole
    start = found.start(2) - found.start()
    made = "".join(_pieces(_patient(inner) if patient else inner))
    return whole[:start] + made + whole[start + len(inner) :]


def _patient(action: str) -> str:
    """An action for Helm, which asks templates for zero values: those have no fields."""
    made, before = [], ""
    for token in _TOKEN.finditer(action):
        one, chain = token[0], _CHAIN.fullmatch(token[0])
        if chain is None or token["text"] or before in {")", "]"}:
            made.append(one)
        else:
            root = chain["root"] or "."
            if before == "$" and not chain["root"]:
                made.pop()
                root = "$"
            keys = " ".join(f'"{key}"' for key in chain["keys"][1:].split("."))
            made.append(f"(dig {keys} nil {root})")
        before = one
    return "".join(made)


def _pieces(action: str) -> Iterator[str]:
    """`slugify` takes what stands before it in its command, too: it is put behind the command."""
    waiting = [False]
    for token in _TOKEN.finditer(action):
        if token["ends"]:
            yield from _slug(waiting, closes=token[0] == ")")
        if token["opens"]:
            waiting.append(False)
        name = token["name"] or ""
        if name in FOREIGN:
            hint = "use one of sprig's, or one that Argo CD adds"
            raise _refused(f"Argo CD has no function `{name}` for templates", hint)
        if name == SLUGIFY:
            waiting[-1] = True
        yield "list" if name == SLUGIFY else RENAMED.get(name, token[0])
    yield from _slug(waiting, closes=False)


def _slug(waiting: list[bool], *, closes: bool) -> Iterator[str]:
    if waiting[-1]:
        yield f' | include "tidegate.{SLUGIFY}" '
    waiting[-1] = False
    if closes and len(waiting) > 1:
        waiting.pop()


def _refused(problem: str, hint: str) -> RenderError:
    return RenderError("render.template", problem, hint=hint)
