"""Profile files, the default profile, and the page that describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.documents import read_documents
from tidegate.errors import Location, TidegateError
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import Json
from tidegate.model.simulation.duration_estimate import DurationEstimate
from tidegate.model.times import SECOND, Ms, format_duration
from tidegate.sandbox.node.kubelet.states import DIAL_FAILS, DIAL_POLLS
from tidegate.sandbox.node.profile import (
    ContainerIdentity,
    ContainerProfile,
    ContainerRule,
    ContainerSelector,
    OwnerName,
    Profile,
    StageRule,
    StageSelector,
)
from tidegate.sandbox.node.profile_file import (
    DEFAULT_PROFILE_FILE,
    DURATIONS,
    default_profile,
    read_profile,
)

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "reference" / "profile-format.md").read_text()
PODS_PAGE = (DOCS / "concepts" / "pods.md").read_text()


def profile_of(text: str) -> Profile:
    return read_profile(text.encode(), "p.yaml", base=Profile())


def error_of(text: str) -> TidegateError:
    with pytest.raises(ExceptionGroup, match=r"p\.yaml") as caught:
        profile_of(text)
    (error,) = caught.value.exceptions
    assert isinstance(error, TidegateError)
    assert error.location is not None
    assert error.location.line
    assert error.hint
    return error


def container_in(profile: Profile, image: str) -> ContainerProfile:
    return profile.container_profile(
        ContainerIdentity((OwnerName("Pod", "db"),), "shop", "db", image)
    )


def test_the_default_profile_can_be_read_and_names_its_assumptions() -> None:
    names = [assumption.name for assumption in default_profile().assumptions]

    assert default_profile().name == "typical"
    assert {DIAL_FAILS, DIAL_POLLS} <= set(names)
    assert len(names) == len(set(names))
    assert all(
        assumption.claim and assumption.source for assumption in default_profile().assumptions
    )


def test_the_default_profile_gives_databases_more_time() -> None:
    database, other = (
        container_in(default_profile(), "docker.io/postgres:17"),
        container_in(default_profile(), "app:1"),
    )

    assert database.ready > other.ready


def test_a_profile_overrides_another() -> None:
    text = "durations: {pull: 9s}\nrules:\n- {when: {image: '*postgres*'}, ready: 90s}\n"

    profile = read_profile(text.encode(), "p.yaml", base=default_profile())

    database = container_in(profile, "postgres:17")
    assert (database.pull, database.ready, database.start) == (9_000, 90_000, 1_000)
    assert profile.polls == default_profile().polls
    assert profile.name == "typical"


def test_a_rule_has_a_selector_and_changes() -> None:
    profile = profile_of("rules:\n- {when: {kind: Deployment, name: api}, dials: true, stop: 0}\n")

    rule = ContainerRule(
        ContainerSelector(kind="Deployment", name="api"), {"dials": True, "stop": Ms(0)}
    )
    assert profile.rules == (rule,)


def test_a_stage_of_an_operator_can_be_given_another_time() -> None:
    text = "stages:\n- {when: {kind: Cluster, name: 'big-*', stage: healthy}, after: 10m}\n"

    profile = read_profile(
        text.encode(), "p.yaml", base=Profile(), operators=load_builtin_knowledge().rows
    )

    fit = StageSelector(kind="Cluster", name="big-*", stage="healthy")
    assert profile.stages == (StageRule(when=fit, after=Ms(600_000)),)


@pytest.mark.parametrize(
    "when",
    [
        "{group: postgresql.cnpg.io, kind: Cluster, stage: helthy}",
        "{kind: Gadget, stage: done}",
    ],
    ids=["similar stage", "unknown kind"],
)
def test_a_stage_that_no_row_has_is_a_mistake(when: str, wording: RecordedWording) -> None:
    text = f"stages:\n- {{when: {when}, after: 1m}}\n"

    with pytest.raises(ExceptionGroup) as caught:
        read_profile(
            text.encode(), "p.yaml", base=Profile(), operators=load_builtin_knowledge().rows
        )

    (error,) = caught.value.exceptions
    assert isinstance(error, TidegateError)
    assert error.code == "file.value"
    wording(error.hint)
    assert str(error.location).endswith("(stages[0].when.stage)")


@pytest.mark.parametrize("text", ["", "# later\n", "rules: []\n", "durations:\n"])
def test_a_profile_may_be_empty(text: str) -> None:
    assert profile_of(text) == Profile()


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("speed: 1", "file.key", "speed"),
        ("durations: {pul: 1s}", "file.key", "pul"),
        ("durations: {pull: fast}", "file.duration", "pull"),
        ("durations: {pull: 100ms}", "file.value", "pull"),
        ("durations: {dial: 0s}", "file.value", "dial"),
        ("durations: {poll: 0s}", "file.value", "poll"),
        ("rules: [{wenn: {}}]", "file.key", "wenn"),
        ("rules: [{when: {verb: get}}]", "file.key", "verb"),
        ("rules: [{dials: 'yes'}]", "file.type", "dials"),
        ("stages: [{when: {kind: Cluster}}]", "file.missing", "after"),
        ("stages: [{when: {image: a}, after: 1s}]", "file.key", "image"),
        ("stages: [{after: soon}]", "file.duration", "after"),
        ("polls: ['(']", "file.value", "polls"),
        ("assumptions: [{name: a, claim: b}]", "file.missing", "source"),
        ("name: a\nname: b", "file.duplicate", "name"),
    ],
)
def test_a_mistake_in_a_profile_is_reported_with_its_line(text: str, code: str, name: str) -> None:
    error = error_of(text)

    assert error.code == code
    assert name in error.problem


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [("[]", "file.type", 1), ("name: a\n---\nname: b", "file.documents", 3)],
    ids=["list", "two documents"],
)
def test_a_profile_is_one_mapping(
    text: str, code: str, line: int, wording: RecordedWording
) -> None:
    error = error_of(text)

    assert (error.code, error.location) == (code, Location("p.yaml", line, 1))
    wording(error.problem)


def rows(page: str, title: str) -> dict[str, str]:
    """The rows of the table under a header: first cell to last cell."""
    table = page.split(f"| {title} |", 1)[1].split("\n\n", 1)[0]
    return dict(re.findall(r"^\| (`.+?`) \| .*?([^|]+) \|$", table, re.MULTILINE))


def test_the_page_lists_every_key() -> None:
    assert {key.strip("`") for key in rows(PAGE, "key | contains")} == set(
        Profile.__struct_fields__
    )


def test_the_page_lists_the_keys_of_a_selector_of_stages() -> None:
    table = PAGE.split("| key of `when` | matches |", 1)[1].split("\n\n", 1)[0]
    shown = re.findall(r"`(\w+)`", "".join(line.split(" | ")[0] for line in table.splitlines()))

    assert sorted(shown) == sorted(StageSelector.__struct_fields__)


def test_the_page_lists_every_duration_with_what_is_typical() -> None:
    shown = rows(PAGE, "key | from, to | `typical`")

    durations = default_profile().durations
    assert {key.strip("`"): span.strip() for key, span in shown.items()} == {
        key: format_duration(getattr(durations, key)) for key in DURATIONS
    }


def test_the_examples_of_the_page_can_be_read() -> None:
    whole, stages = (
        read_profile(
            example.encode(),
            "page.md",
            base=default_profile(),
            operators=load_builtin_knowledge().rows,
        )
        for example in re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL)
    )

    assert whole.name == "ours"
    assert [rule.after for rule in stages.stages] == [60_000, 5_000]


def test_the_page_on_pods_lists_every_assumption() -> None:
    shown = rows(PODS_PAGE, "assumption | of")

    listed = {name for cell in shown for name in re.findall(r"`([a-z-]+)`", cell)}
    assert listed == {assumption.name for assumption in default_profile().assumptions}


def ranges(body: Json) -> Iterator[Json]:
    """The durations of the shipped profile, in general and in rules."""
    yield from get_mapping(body, "durations").values()
    for rule in get_mappings(body, "rules"):
        yield from (value for key, value in rule.items() if key in DURATIONS)


def test_every_time_of_the_default_profile_has_a_range_and_a_source() -> None:
    (document,) = read_documents(DEFAULT_PROFILE_FILE.read_bytes(), DEFAULT_PROFILE_FILE.name)
    result = [*ranges(document.body)]

    assert len(result) >= len(DURATIONS)
    for item in result:
        assert set(get_mapping(item)) == {"likely", "optimistic", "pessimistic", "source"}


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("durations: {pull: 4s}", (2_000, 4_000, 12_000)),
        ("durations: {pull: {likely: 4s}}", (2_000, 4_000, 12_000)),
        ("durations: {pull: {likely: 4s, pessimistic: 9s}}", (2_000, 4_000, 9_000)),
        ("durations: {pull: {likely: 4s, optimistic: 0s}}", (0, 4_000, 12_000)),
        ("durations: {pull: 4s}\nspread: {optimistic: 1}", (4_000, 4_000, 12_000)),
        ("spread: {pessimistic: 10}", (0, 2_000, 13_000)),
    ],
)
def test_the_estimate_decides_which_end_of_a_range_counts(
    text: str, spans: tuple[int, int, int]
) -> None:
    result = tuple(
        read_profile(
            text.encode(), "p.yaml", base=default_profile(item), estimate=item
        ).durations.pull
        for item in DurationEstimate
    )

    assert result == spans


def test_a_call_takes_a_second_however_optimistic_one_is() -> None:
    text = b"durations: {dial: 1s}"

    profile = read_profile(
        text, "p.yaml", base=default_profile(), estimate=DurationEstimate.OPTIMISTIC
    )

    assert profile.durations.dial == SECOND


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("durations: {pull: {likely: 2s, optimistic: 3s}}", "file.value"),
        ("rules: [{run: {likely: 2s, pessimistic: 1s}}]", "file.value"),
        ("stages: [{after: {likely: 2s, pessimistic: 0s}}]", "file.value"),
        ("durations: {pull: {optimistic: 3s}}", "file.missing"),
        ("durations: {pull: {likely: 3s, worst: 4s}}", "file.key"),
        ("durations: {pull: [3s]}", "file.type"),
        ("spread: {optimistic: 2}", "file.value"),
        ("spread: {pessimistic: 0.5}", "file.value"),
    ],
)
def test_a_mistake_in_a_range_is_reported_with_its_line(
    text: str, code: str, wording: RecordedWording
) -> None:
    error = error_of(text)

    assert error.code == code
    wording(error.problem)
