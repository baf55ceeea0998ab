"""Which calls are hit, by what, and what happens by itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.faults import (
    CONFLICT,
    ERROR,
    UNREACHABLE,
    VERBS,
    CallEffect,
    CallFault,
    Compact,
    Down,
    Drop,
    Fault,
    Faults,
    Lose,
    Match,
    Often,
    Refuse,
    Silence,
    Slow,
    TimedFault,
    Up,
    verb_of,
)
from tidegate.world.calls import (
    Call,
    Get,
    Http,
    Kinds,
    List,
    Local,
    Logs,
    Request,
    Selection,
    Ticket,
    Verb,
    Watch,
    Write,
)

DEPLOYMENT = Kind("apps", "v1", "Deployment")
SECRET = Kind("", "v1", "Secret")
POD = Kind("", "v1", "Pod")
WEB = Ref(DEPLOYMENT, "shop", "web")
DB = Ref(SECRET, "shop", "db")

REQUESTS: tuple[Request, ...] = (
    *(Write(verb=verb, ref=WEB, manager="tidegate") for verb in Verb),
    Get(DB),
    List(Selection(DEPLOYMENT)),
    Watch(Selection(DEPLOYMENT, "shop")),
    Logs(ref=Ref(POD, "shop", "web-0")),
    Kinds(),
    Http("/readyz"),
)
SLOW = Slow(Ms(5))


def a_call(request: Request = REQUESTS[0], *, cluster: str = "") -> Call:
    return Call(ticket=Ticket(1), request=request, cluster=cluster)


def hits(faults: Faults, count: int, *, now: int = 0) -> list[int]:
    """Which of so many equal calls are hit, counted from 1."""
    return [
        number for number in range(1, count + 1) if faults.for_call(a_call(), Ms(now)) == (SLOW,)
    ]


def effects(faults: Faults, calls: Sequence[tuple[Call, Ms]]) -> list[tuple[CallEffect, ...]]:
    return [faults.for_call(call, now) for call, now in calls]


def met(when: Match) -> list[str]:
    """The verbs of the requests that a fault meets."""
    faults = Faults([CallFault(SLOW, when)])
    return [verb_of(request) for request in REQUESTS if faults.for_call(a_call(request), Ms(0))]


def test_without_faults_nothing_happens() -> None:
    faults = Faults()

    assert faults.for_call(a_call(), Ms(0)) == ()
    assert faults.moments() == ()


def test_every_request_of_a_cluster_has_a_verb() -> None:
    assert tuple(verb_of(request) for request in REQUESTS) == VERBS


@pytest.mark.parametrize(
    ("when", "verbs"),
    [
        (Match(), list(VERBS)),
        (Match(verbs=("get", "create")), ["create", "get"]),
        (Match(kind="Secret"), ["get"]),
        (Match(kind="Deployment", group="apps"), [*Verb, "list", "watch"]),
        (Match(kind="Deployment", group="extensions"), []),
        (Match(group=""), ["get", "logs"]),
        (Match(namespace="shop"), [*Verb, "get", "watch", "logs"]),
        (Match(namespace=""), ["list"]),
        (Match(name="web"), [*Verb]),
        (Match(manager="tidegate"), [*Verb]),
        (Match(manager="kubectl"), []),
        (Match(cluster=""), list(VERBS)),
        (Match(cluster="prod"), []),
    ],
)
def test_a_fault_meets_what_fits_all_it_says(when: Match, verbs: list[str]) -> None:
    assert met(when) == verbs


@pytest.mark.parametrize(
    ("fields", "is_met"),
    [
        ("metadata.name=web", True),
        ("metadata.name==web", True),
        ("metadata.namespace=shop,metadata.name=web", True),
        ("metadata.name!=web", False),
        ("metadata.name=db", False),
        ("", False),
    ],
)
def test_a_selection_has_a_name_where_it_asks_for_one(fields: str, is_met: bool) -> None:  # noqa: FBT001
    when = Match(name="web")

    assert when.covers_watch(Selection(DEPLOYMENT, "shop", fields=fields), cluster="") is is_met


def test_local_work_meets_no_fault() -> None:
    faults = Faults([CallFault(SLOW), TimedFault(Ms(0), Down())])

    assert faults.for_call(a_call(Local("render")), Ms(0)) == ()


@given(every=st.integers(1, 9), times=st.none() | st.integers(1, 5), count=st.integers(0, 60))
def test_every_nth_call_is_hit_and_no_more_than_wanted(
    every: int, times: int | None, count: int
) -> None:
    faults = Faults([CallFault(SLOW, often=Often(every=every, times=times))])

    assert hits(faults, count) == list(range(every, count + 1, every))[:times]


@pytest.mark.parametrize("probability", [0.0, 0.05, 0.5, 0.9, 1.0])
def test_chance_hits_about_as_many_as_it_says(probability: float) -> None:
    for seed in range(5):
        faults = Faults([CallFault(SLOW, often=Often(probability=probability))], seed=seed)

        share = len(hits(faults, 4_000)) / 4_000

        assert share == pytest.approx(probability, abs=0.04)
        assert share in {0.0, 1.0} or 0 < probability < 1


def test_another_seed_and_another_position_hit_other_calls() -> None:
    fault = CallFault(SLOW, often=Often(probability=0.5))
    elsewhere = CallFault(SLOW, Match(cluster="elsewhere"))

    drawn = [
        hits(Faults([fault], seed=1), 100),
        hits(Faults([fault], seed=2), 100),
        hits(Faults([elsewhere, fault], seed=1), 100),
    ]

    assert all(first != second for first, second in zip(drawn, [*drawn[1:], drawn[0]], strict=True))


def test_a_fault_that_is_added_at_the_end_changes_nothing_before_it() -> None:
    fault = CallFault(SLOW, often=Often(probability=0.5))
    alone, followed = Faults([fault]), Faults([fault, CallFault(Refuse(ERROR))])

    calls = [(a_call(), Ms(0))] * 50

    assert effects(alone, calls) == [found[:-1] for found in effects(followed, calls)]


def test_calls_outside_the_window_are_neither_hit_nor_counted() -> None:
    often = Often(every=2, start=Ms(100), until=Ms(200))
    faults = Faults([CallFault(SLOW, often=often)], start=Ms(1_000))

    found = [hits(faults, 1, now=now) for now in (1_099, 1_100, 1_199, 1_199, 1_200, 1_200)]

    assert found == [[], [], [1], [], [], []]


def test_a_call_may_meet_many_faults_in_the_order_of_the_file() -> None:
    faults = Faults([CallFault(SLOW), CallFault(Lose(performed=True)), CallFault(Refuse(CONFLICT))])

    found = faults.for_call(a_call(), Ms(0))

    assert found == (SLOW, Lose(performed=True), Refuse(CONFLICT))


def test_a_cluster_that_is_down_answers_nobody_and_counts_nothing() -> None:
    faults = Faults(
        [
            CallFault(SLOW, often=Often(times=1)),
            TimedFault(Ms(10), Down(until=Ms(20)), Match(cluster="prod")),
        ],
        start=Ms(1_000),
    )
    call = a_call(cluster="prod")

    found = [faults.for_call(call, Ms(now)) for now in (1_010, 1_019, 1_020)]

    assert found == [(Refuse(UNREACHABLE),), (Refuse(UNREACHABLE),), (SLOW,)]
    assert faults.for_call(a_call(cluster="staging"), Ms(1_015)) == ()


def test_a_cluster_stays_down_while_any_fault_says_so() -> None:
    faults = Faults(
        [TimedFault(Ms(10), Down(Ms(30))), TimedFault(Ms(20), Down(), Match(cluster="prod"))]
    )

    assert [faults.is_down("prod", Ms(now)) for now in (9, 10, 30)] == [False, True, True]
    assert [faults.is_down("other", Ms(now)) for now in (9, 10, 30)] == [False, True, False]


def test_moments_come_in_order_and_on_the_clock_of_the_world() -> None:
    prod = Match(cluster="prod")
    faults = Faults(
        [
            TimedFault(Ms(30), Compact()),
            CallFault(SLOW),
            TimedFault(Ms(5), Down(until=Ms(30)), prod),
            TimedFault(Ms(5), Silence(), Match(kind="Job")),
        ],
        start=Ms(1_000),
    )

    assert faults.moments() == (
        TimedFault(Ms(1_005), Down(until=Ms(30)), prod),
        TimedFault(Ms(1_005), Silence(), Match(kind="Job")),
        TimedFault(Ms(1_030), Compact()),
        TimedFault(Ms(1_030), Up(), prod),
    )


@pytest.mark.parametrize(
    ("when", "is_met"),
    [
        (Match(), True),
        (Match(cluster="prod", kind="Deployment", group="apps", namespace="shop"), True),
        (Match(cluster="staging"), False),
        (Match(kind="Job"), False),
        (Match(namespace="mail"), False),
    ],
)
def test_a_timed_fault_says_which_open_watches_it_hits(when: Match, is_met: bool) -> None:  # noqa: FBT001
    watched = Selection(DEPLOYMENT, "shop")

    assert when.covers_watch(watched, cluster="prod") is is_met


calls = st.tuples(
    st.builds(a_call, st.sampled_from(REQUESTS), cluster=st.sampled_from(["", "prod"])),
    st.integers(0, 100).map(Ms),
)
oftens = st.builds(
    Often,
    every=st.integers(1, 4),
    probability=st.none() | st.floats(0, 1),
    times=st.none() | st.integers(1, 3),
    start=st.integers(0, 50).map(Ms),
    until=st.none() | st.integers(51, 100).map(Ms),
)
matches = st.builds(
    Match,
    cluster=st.none() | st.just("prod"),
    verbs=st.lists(st.sampled_from(VERBS), max_size=2).map(tuple),
    kind=st.none() | st.sampled_from(["Deployment", "Secret"]),
)
call_effects: st.SearchStrategy[CallEffect] = st.sampled_from(
    [SLOW, Refuse(ERROR), Lose(performed=False), Drop(Ms(3)), Silence()]
)
faults_of_all_sorts: st.SearchStrategy[Fault] = st.builds(
    CallFault, call_effects, matches, oftens
) | st.builds(TimedFault, st.integers(0, 50).map(Ms), st.just(Down(Ms(60))), st.just(Match()))


@given(
    rules=st.lists(faults_of_all_sorts, max_size=4),
    course=st.lists(calls, max_size=30),
    seed=st.integers(),
)
def test_the_same_seed_and_the_same_calls_meet_the_same_faults(
    rules: list[Fault], course: list[tuple[Call, Ms]], seed: int
) -> None:
    first, second = Faults(rules, seed=seed), Faults(rules, seed=seed)

    assert effects(first, course) == effects(second, course)
    assert first.moments() == second.moments()


def test_chance_is_the_same_on_every_machine() -> None:
    faults = Faults([CallFault(SLOW, often=Often(probability=0.3))], seed=7)

    assert hits(faults, 30) == [1, 2, 4, 13, 14, 15, 24, 29, 30]
