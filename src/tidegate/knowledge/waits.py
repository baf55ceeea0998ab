"""What a script waits for with `kubectl wait` and `kubectl rollout status`, read from its text.

Read is what a shell would do with plain words: lines, lists, `for` over words, variables that are
known. What takes more than that is passed over, and nobody waits for it.
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
"""How long `kubectl wait` waits with a negative timeout."""
PATH = re.compile(r"\{?\.?([\w-]+(?:\.[\w-]+)*)\}?")


class WaitCondition(Enum):
    """What is waited for."""

    CONDITION = "condition"
    FIELD = "jsonpath"
    CREATED = "create"
    DELETED = "delete"
    ROLLED_OUT = "rollout"


class OnWaitTimeout(Enum):
    """What a script does when its time is up: it fails, it goes on, or it begins to wait again."""

    FAILS = "fails"
    GOES_ON = "goes on"
    STAYS = "stays"


class KubectlWait(NamedTuple):
    """One object, or all of a kind that a selector fits, and what is to become of it.

    `resource` is a word for a kind, as kubectl takes it. Without a namespace it is the script's
    own; `*` is every one. `timeout` is None where it waits for ever.
    """

    resource: str
    name: str
    namespace: str
    selector: str
    condition: WaitCondition
    key: str
    value: str
    timeout: Ms | None
    on_timeout: OnWaitTimeout

    @property
    def target(self) -> str:
        return f"{self.resource}/{self.name}" if self.name else self.resource


def find_command_waits(
    command: Iterable[str], variables: Mapping[str, str]
) -> tuple[KubectlWait, ...]:
    """What a container with this command waits for, one after another."""
    words = [_filled(word, variables) for word in command]
    if words and PROGRAM.search(words[0]):
        return tuple(_read(words, OnWaitTimeout.FAILS))
    for option, script in pairwise(words):
        if SHELL_SCRIPT.fullmatch(option):
            return find_script_waits(script, variables, is_strict="e" in option)
    return ()


def find_script_waits(
    script: str, variables: Mapping[str, str], *, is_strict: bool = False
) -> tuple[KubectlWait, ...]:
    """What a script waits for. A strict one ends when one of its commands fails."""
    if len(script) > MAX_TEXT_LENGTH or "kubectl" not in script:
        return ()
    is_strict = is_strict or SETS_ERREXIT.search(script) is not None
    lines = _unrolled(LINE_CONTINUATION.sub(" ", script)).strip().splitlines()
    found: list[KubectlWait] = []
    for number, line in enumerate(lines, 1):
        for said, follower in _commands(_filled(line, variables)):
            fails = (is_strict or number == len(lines)) and follower != "||"
            words, overrun = _called(said, OnWaitTimeout.FAILS if fails else OnWaitTimeout.GOES_ON)
            if words and PROGRAM.search(words[0]):
                found += _read(words, overrun)
    return tuple(found)


def _called(said: list[str], overrun: OnWaitTimeout) -> tuple[list[str], OnWaitTimeout]:
    """A command without the shell's words before it."""
    while said and said[0] in IGNORED_WORDS:
        said = said[1:]
    if said[:1] == ["until"]:
        return said[1:], OnWaitTimeout.STAYS
    if said[:2] == ["while", "!"]:
        return said[2:], OnWaitTimeout.STAYS
    return said, overrun


def _unrolled(script: str) -> str:
    """Loops over plain words, written out."""

    def written_out(found: re.Match[str]) -> str:
        name, items, body = found.groups()
        words = items.split()
        if len(words) > MAX_LOOP_WORDS or "$" in items or "`" in items:
            return body
        return "\n".join(_filled(body, {name: word.strip("'\"")}) for word in words)

    for _ in range(MAX_LOOPS):
        script, count = LOOP.subn(written_out, script)
        if not count or len(script) > MAX_TEXT_LENGTH:
            break
    return script


def _filled(line: str, variables: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[3]
        return variables.get(name, found[0])

    return VARIABLE.sub(value, line)


def _commands(line: str) -> Iterator[tuple[list[str], str]]:
    """The commands of a line, each with what separates it from the next."""
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


def _read(words: list[str], overrun: OnWaitTimeout) -> Iterator[KubectlWait]:
    """What one call of kubectl waits for."""
    if any("$" in word or "`" in word for word in words):
        return
    options, said = _parted(words[1:])
    if said[:1] == ["wait"]:
        yield from _waiting(said[1:], options, overrun)
    elif said[:2] == ["rollout", "status"]:
        timeout = _span(options.get("--timeout", "0s"))
        for resource, name in _targets(said[2:]):
            yield _wait(resource, name, options, overrun)._replace(timeout=timeout or None)


def _waiting(
    said: list[str], options: Mapping[str, str], overrun: OnWaitTimeout
) -> Iterator[KubectlWait]:
    aim = _aim(options.get("--for", ""))
    if aim is None or "--filename" in options:
        return
    timeout = _span(options.get("--timeout", "")) if "--timeout" in options else DEFAULT_TIMEOUT
    chosen = [*_targets(said)]
    if len(said) == 1 and "/" not in said[0] and {"--all", "--selector"} & options.keys():
        chosen = [(said[0], "")]
    for resource, name in chosen:
        found = _wait(resource, name, options, overrun)
        yield found._replace(
            condition=aim[0],
            key=aim[1],
            value=aim[2],
            timeout=WEEK if timeout is not None and timeout < 0 else timeout,
        )


def _wait(
    resource: str, name: str, options: Mapping[str, str], overrun: OnWaitTimeout
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
        on_timeout=overrun,
    )


def _parted(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options by their long names, and all other words."""
    options: dict[str, str] = {}
    said: list[str] = []
    rest = iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        if not word.startswith("-"):
            said.append(word)
        elif sign:
            options[LONG_OPTIONS.get(name, name)] = value
        elif word in OPTIONS_WITH_VALUE:
            options[LONG_OPTIONS.get(word, word)] = next(rest, "")
        else:
            options[LONG_OPTIONS.get(word, word)] = ""
    return options, said


def _targets(said: list[str]) -> Iterator[tuple[str, str]]:
    """`kind/name` for each, or one kind and names of it."""
    if said and all("/" in word for word in said):
        for word in said:
            resource, _, name = word.partition("/")
            yield resource, name
    elif said:
        yield from ((said[0], name) for name in said[1:])


def _aim(written: str) -> tuple[WaitCondition, str, str] | None:
    """What `--for` asks for; None where it cannot be read."""
    word, _, rest = written.partition("=")
    match word:
        case "condition" if rest:
            key, _, value = rest.partition("=")
            return WaitCondition.CONDITION, key, value or "True"
        case "jsonpath":
            path, _, value = rest.partition("=")
            found = PATH.fullmatch(path)
            return (WaitCondition.FIELD, found[1], value) if found else None
        case "create" | "delete" if not rest:
            return WaitCondition(word), "", ""
    return None


def _span(written: str) -> Ms | None:
    """A timeout; None where it cannot be read: then nobody gives up."""
    try:
        return parse_duration(written)
    except ValueError:
        return None
