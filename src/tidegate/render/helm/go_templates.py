"""Go templates with many sets of parameters, as ApplicationSets have them.

texts = await render_texts(("{{ .name

slugify }}",), ({"name": "Web"},), workers)

The Helm SDK has the same language and functions. Functions that Argo CD adds are translated here,
and functions that only Helm has are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from tidegate.errors import ProcessError, RenderError, sanitize
from tidegate.external.worker import Workers
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.text.suggest import suggest_one_of
from tidegate.model.units.chart_request import GoTemplateRequest
from tidegate.render.workers import WorkerError

STRICT = "missingkey=error"
ZERO = "missingkey=zero"
LENIENT = ("missingkey=default", "missingkey=invalid", ZERO)
NORMALIZE, SLUGIFY = "normalize", "slugify"
TRANSLATED_FUNCTIONS = {"fromJson": "mustFromJson", NORMALIZE: f'include "tidegate.{NORMALIZE}"'}
HELM_FUNCTIONS = frozenset(
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
_TEMPLATE_PATH = lazy_regex(r"(?:.*/)?templates/_(\d+)\.tpl")
MISSING_PARAMETER = lazy_regex(
    "map has no entry for key|nil data; no entry for key|can't evaluate field"
)
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
"""A field of a field: of the dot, of a variable, or of `$`, which is a token of its own."""
_encode = msgspec.json.Encoder().encode
Params: TypeAlias = Mapping[str, object]
Rows: TypeAlias = tuple[tuple[str, ...], ...]
_decode: Callable[[bytes], Rows | WorkerError] = msgspec.json.Decoder(Rows | WorkerError).decode


class GoTextError(RenderError):
    """An error: a template cannot be rendered."""

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
    """Return what the templates render to, for each set of parameters.

    Raises GoTextError for the first template that cannot be rendered. With `lenient`, a template
    that names a missing parameter is returned as it is.

    Like `Replace` and `isMissingKeyError` in `applicationset/utils/utils.go` of Argo CD 3.5.6.
    """
    strict, zero = _is_strict(options), bool(options) and options[-1] == ZERO
    request = GoTemplateRequest(
        tuple(_translate_text(text, lenient=not (strict or zero)) for text in texts),
        tuple(map(dict, params)),
        strict=strict,
    )
    try:
        return await _request(request, texts, workers)
    except RenderError as error:
        if not lenient or not MISSING_PARAMETER.search(error.problem):
            raise
    return tuple([await _render_separately(request, row, texts, workers) for row in request.params])


async def _render_separately(
    request: GoTemplateRequest, params: Params, texts: Sequence[str], workers: Workers
) -> tuple[str, ...]:
    """Render the templates one by one; those with a missing parameter stay as they are."""
    results = []
    for text, original in zip(request.texts, texts, strict=True):
        single = msgspec.structs.replace(request, texts=(text,), params=(dict(params),))
        try:
            results.append((await _request(single, (original,), workers))[0][0])
        except RenderError as error:
            if not MISSING_PARAMETER.search(error.problem):
                raise
            results.append(original)
    return tuple(results)


async def _request(request: GoTemplateRequest, originals: Sequence[str], workers: Workers) -> Rows:
    try:
        reply = _decode(await workers.request(_encode(request)))
    except ProcessError as error:
        problem = f"cannot render the templates: {error.problem}"
        raise RenderError("render.template", problem, hint=error.hint) from error
    if isinstance(reply, WorkerError):
        match = _TEMPLATE_PATH.fullmatch(reply.location.name) if reply.location else None
        if match is None:
            raise _template_error(reply.problem, "")
        text = originals[int(match[1])]
        raise GoTextError(text, f"`{sanitize(text)}`: {reply.problem}")
    return reply


def _is_strict(options: Sequence[str]) -> bool:
    for option in options:
        if option != STRICT and option not in LENIENT:
            hint = suggest_one_of(option, (STRICT, *LENIENT))
            raise _template_error(f"unknown template option `{sanitize(option)}`", hint)
    return bool(options) and options[-1] == STRICT


def _translate_text(text: str, *, lenient: bool) -> str:
    try:
        return translate(text, lenient=lenient)
    except RenderError as error:
        raise GoTextError(text, error.problem, error.hint) from None


def translate(text: str, *, lenient: bool = False) -> str:
    """Return the template with functions of the SDK.

    Raises RenderError for functions that Argo CD does not have. With `lenient`, a field of a
    missing value is missing as well.
    """
    return _ACTION.sub(partial(_translate_action, lenient), text)


def _translate_action(lenient: bool, match: re.Match[str]) -> str:  # noqa: FBT001 - bound by `partial`
    action, inner = match[0], match[2]
    if inner is None:
        return action
    start = match.start(2) - match.start()
    translated = "".join(_translate_tokens(_dig_fields(inner) if lenient else inner))
    return action[:start] + translated + action[start + len(inner) :]


def _dig_fields(action: str) -> str:
    """Replace fields of fields by `dig`, as a missing value has no fields in Helm."""
    tokens, previous = [], ""
    for token in _TOKEN.finditer(action):
        text, chain = token[0], _CHAIN.fullmatch(token[0])
        if chain is None or token["text"] or previous in {")", "]"}:
            tokens.append(text)
        else:
            root = chain["root"] or "."
            if previous == "$" and not chain["root"]:
                tokens.pop()
                root = "$"
            keys = " ".join(f'"{key}"' for key in chain["keys"][1:].split("."))
            tokens.append(f"(dig {keys} nil {root})")
        previous = text
    return "".join(tokens)


def _translate_tokens(action: str) -> Iterator[str]:
    """Yield the translated tokens.

    `slugify` also gets the piped value as an argument, so it is moved after the command.
    """
    pending = [False]
    for token in _TOKEN.finditer(action):
        if token["ends"]:
            yield from _end_command(pending, closes=token[0] == ")")
        if token["opens"]:
            pending.append(False)
        name = token["name"] or ""
        if name in HELM_FUNCTIONS:
            hint = "use a sprig function, or one that Argo CD adds"
            raise _template_error(f"Argo CD has no template function `{name}`", hint)
        if name == SLUGIFY:
            pending[-1] = True
        yield "list" if name == SLUGIFY else TRANSLATED_FUNCTIONS.get(name, token[0])
    yield from _end_command(pending, closes=False)


def _end_command(pending: list[bool], *, closes: bool) -> Iterator[str]:
    if pending[-1]:
        yield f' | include "tidegate.{SLUGIFY}" '
    pending[-1] = False
    if closes and len(pending) > 1:
        pending.pop()


def _template_error(problem: str, hint: str) -> RenderError:
    return RenderError("render.template", problem, hint=hint)
