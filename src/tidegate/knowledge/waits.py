"""The `kubectl wait` and `kubectl rollout status` commands in a shell script.

Understands lines, lists, `for` over words and known variables. Anything else is skipped, and no
wait is assumed for it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from tidegate.knowledge.hosts import MAX_TEXT_LENGTH
from tidegate.model.times import SECOND, Ms, parse_duration

PROGRAM = re.compile(r"(?:^|/)kubectl$")
LINE_CONTINUATION = re.compile(r"\\\n")
LOOP = re.compile(
    r"\bfor\s+(\w+)\s+in\s+([^;\n]+)[;\n]\s*do\b((?:(?!\bfor\s).)*?)\bdone\b", re.DOTALL
)
MAX_LOOPS, MAX_LOOP_WORDS = 10, 50
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|\((\w+)\)|(\w+))")
SHELL_SCRIPT = re.compile(r"-\w*c\w*")
SETS_ERREXIT = re.compile(r"(?m)(?:^|[;&])\s*set\s+-\w*e|\A#!.*\s-\w*e")
SEPARATORS = frozenset({";", "&&", "||", "|", "&", "(", ")", ";;"})
IGNORED_WORDS = frozenset({"do", "then", "else", "{", "exec", "time"})
OPTIONS_WITH_VALUE = frozenset(
    {"-n", "--namespace", "--for", "--timeout", "-l", "--selector", "--context", "--kubeconfig"}
    | {"-o", "--output", "--field-selector", "-f", "--filename", "--request-timeout", "--revision"}
)
LONG_OPTIONS = {
    "-n": "--namespace",
    "-l": "--selector",
    "-f": "--filename",
    "-A": "--all-namespaces",
}
DEFAULT_TIMEOUT = Ms(30 * SECOND)
WEEK = Ms(7 * 24 * 3600 * SECOND)
"""The timeout of `kubectl wait` if the given one is negative.

Like `ToOptions` in `pkg/cmd/wait/wait.go` of k8s.io/kubectl 0.36.4.
"""
PATH = re.compile(r"\{?\.?([\w-]+(?:\.[\w-]+)*)\}?")


class WaitCondition(Enum):
    """The condition that a wait is for."""

    CONDITION = "condition"
    FIELD = "jsonpath"
    CREATED = "create"
    DELETED = "delete"
    ROLLED_OUT = "rollout"


class OnWaitTimeout(Enum):
    """The reaction of a script to a timeout of a wait: it fails, continues, or waits again."""

    FAILS = "fails"
    GOES_ON = "goes on"
    STAYS = "stays"


class KubectlWait(NamedTuple):
    """A wait for an object, or for all objects of a kind that a selector matches."""

    resource: str
    """The kind, in any spelling that kubectl accepts."""
    name: str
    """The name of the object; empty for all objects that the selector matches."""
    namespace: str
    """The namespace; empty for that of the script, `*` for all."""
    selector: str
    """Label selector; empty for none."""
    condition: WaitCondition
    """The condition that the wait is for."""
    key: str
    """The condition type or the JSONPath."""
    value: str
    """The expected value."""
    timeout: Ms | None
    """The timeout, or None without one."""
    on_timeout: OnWaitTimeout
    """What the script does when the wait times out."""

    @property
    def target(self) -> str:
        """Return the object or kind to wait for, as kubectl names it."""
        return f"{self.resource}/{self.name}" if self.name else self.resource


def find_command_waits(
    command: Iterable[str], variables: Mapping[str, str]
) -> tuple[KubectlWait, ...]:
    """Return the waits of a container with this command, in order."""
    words = [_substitute_variables(word, variables) for word in command]
    if words and PROGRAM.search(words[0]):
        return tuple(_parse_kubectl(words, OnWaitTimeout.FAILS))
    for option, script in pairwise(words):
        if SHELL_SCRIPT.fullmatch(option):
            return find_script_waits(script, variables, is_strict="e" in option)
    return ()


def find_script_waits(
    script: str, variables: Mapping[str, str], *, is_strict: bool = False
) -> tuple[KubectlWait, ...]:
    """Return the waits of a script. A strict script ends when a command fails (`set -e`)."""
    if len(script) > MAX_TEXT_LENGTH or "kubectl" not in script:
        return ()
    is_strict = is_strict or SETS_ERREXIT.search(script) is not None
    lines = _unroll_loops(LINE_CONTINUATION.sub(" ", script)).strip().splitlines()
    waits: list[KubectlWait] = []
    for number, line in enumerate(lines, 1):
        for command, separator in _split_commands(_substitute_variables(line, variables)):
            fails = (is_strict or number == len(lines)) and separator != "||"
            words, on_timeout = _strip_keywords(
                command, OnWaitTimeout.FAILS if fails else OnWaitTimeout.GOES_ON
            )
            if words and PROGRAM.search(words[0]):
                waits += _parse_kubectl(words, on_timeout)
    return tuple(waits)


def _strip_keywords(
    command: list[str], on_timeout: OnWaitTimeout
) -> tuple[list[str], OnWaitTimeout]:
    """Return a command without shell keywords before it, and what happens on a timeout."""
    while command and command[0] in IGNORED_WORDS:
        command = command[1:]
    if command[:1] == ["until"]:
        return command[1:], OnWaitTimeout.STAYS
    if command[:2] == ["while", "!"]:
        return command[2:], OnWaitTimeout.STAYS
    return command, on_timeout


def _unroll_loops(script: str) -> str:
    """Return a script with the loops over plain words unrolled."""

    def unroll(loop: re.Match[str]) -> str:
        name, items, body = loop.groups()
        words = items.split()
        if len(words) > MAX_LOOP_WORDS or "$" in items or "`" in items:
            return body
        return "\n".join(_substitute_variables(body, {name: word.strip("'\"")}) for word in words)

    for _ in range(MAX_LOOPS):
        script, count = LOOP.subn(unroll, script)
        if not count or len(script) > MAX_TEXT_LENGTH:
            break
    return script


def _substitute_variables(line: str, variables: Mapping[str, str]) -> str:
    def replace(variable: re.Match[str]) -> str:
        name = variable[1] or variable[2] or variable[3]
        return variables.get(name, variable[0])

    return VARIABLE.sub(replace, line)


def _split_commands(line: str) -> Iterator[tuple[list[str], str]]:
    """Yield the commands of a line, each with the separator after it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = [*lexer]
    except ValueError:  # a quotation that ends on another line
        return
    words: list[str] = []
    for token in tokens:
        if token in SEPARATORS:
            yield words, token
            words = []
        else:
            words.append(token)
    yield words, ""


def _parse_kubectl(words: list[str], on_timeout: OnWaitTimeout) -> Iterator[KubectlWait]:
    """Yield the waits of a kubectl command."""
    if any("$" in word or "`" in word for word in words):
        return
    options, arguments = _split_options(words[1:])
    if arguments[:1] == ["wait"]:
        yield from _parse_wait(arguments[1:], options, on_timeout)
    elif arguments[:2] == ["rollout", "status"]:
        timeout = _parse_timeout(options.get("--timeout", "0s"))
        for resource, name in _parse_targets(arguments[2:]):
            yield _make_wait(resource, name, options, on_timeout)._replace(timeout=timeout or None)


def _parse_wait(
    arguments: list[str], options: Mapping[str, str], on_timeout: OnWaitTimeout
) -> Iterator[KubectlWait]:
    condition = _parse_condition(options.get("--for", ""))
    if condition is None or "--filename" in options:
        return
    timeout = (
        _parse_timeout(options.get("--timeout", "")) if "--timeout" in options else DEFAULT_TIMEOUT
    )
    targets = [*_parse_targets(arguments)]
    if len(arguments) == 1 and "/" not in arguments[0] and {"--all", "--selector"} & options.keys():
        targets = [(arguments[0], "")]
    for resource, name in targets:
        wait = _make_wait(resource, name, options, on_timeout)
        yield wait._replace(
            condition=condition[0],
            key=condition[1],
            value=condition[2],
            timeout=WEEK if timeout is not None and timeout < 0 else timeout,
        )


def _make_wait(
    resource: str, name: str, options: Mapping[str, str], on_timeout: OnWaitTimeout
) -> KubectlWait:
    return KubectlWait(
        resource=resource.lower(),
        name=name,
        namespace="*" if "--all-namespaces" in options else options.get("--namespace", ""),
        selector=options.get("--selector", ""),
        condition=WaitCondition.ROLLED_OUT,
        key="",
        value="",
        timeout=DEFAULT_TIMEOUT,
        on_timeout=on_timeout,
    )


def _split_options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return options by their long names, and the other arguments."""
    options: dict[str, str] = {}
    arguments: list[str] = []
    rest = iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        if not word.startswith("-"):
            arguments.append(word)
        elif separator:
            options[LONG_OPTIONS.get(name, name)] = value
        elif word in OPTIONS_WITH_VALUE:
            options[LONG_OPTIONS.get(word, word)] = next(rest, "")
        else:
            options[LONG_OPTIONS.get(word, word)] = ""
    return options, arguments


def _parse_targets(arguments: list[str]) -> Iterator[tuple[str, str]]:
    """Yield `kind/name` arguments, or one kind with names."""
    if arguments and all("/" in word for word in arguments):
        for word in arguments:
            resource, _, name = word.partition("/")
            yield resource, name
    elif arguments:
        yield from ((arguments[0], name) for name in arguments[1:])


def _parse_condition(text: str) -> tuple[WaitCondition, str, str] | None:
    """Return the condition of `--for`, or None if it is not understood.

    Like `conditionFuncsFor` in `pkg/cmd/wait/wait.go` of k8s.io/kubectl 0.36.4.
    """
    word, _, rest = text.partition("=")
    match word:
        case "condition" if rest:
            key, _, value = rest.partition("=")
            return WaitCondition.CONDITION, key, value or "True"
        case "jsonpath":
            path, _, value = rest.partition("=")
            path_match = PATH.fullmatch(path)
            return (WaitCondition.FIELD, path_match[1], value) if path_match else None
        case "create" | "delete" if not rest:
            return WaitCondition(word), "", ""
    return None


def _parse_timeout(text: str) -> Ms | None:
    """Return a timeout, or None if it is invalid: then the wait has no end."""
    try:
        return parse_duration(text)
    except ValueError:
        return None
