"""Which calls are hit by which faults, and faults at a given time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.faults import (
    CONFLICT,
    ERROR,
    UNREACHABLE,
    VERBS,
    CallEffect,
    CallFault,
    Compaction,
    Delay,
    Fault,
    FaultInjector,
    FaultSelector,
    Frequency,
    Outage,
    Recovery,
    Rejection,
    ResponseLoss,
    StreamDrop,
    StreamSilence,
    TimedFault,
    request_verb,
)
from tidegate.world.requests import (
    Call,
    Discover,
    Get,
    List,
    Logs,
    RawGet,
    Request,
    RequestId,
    RunWorker,
    Selection,
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
    Discover(),
    RawGet("/readyz"),
)
SLOW = Delay(Ms(5))


def a_call(request: Request = REQUESTS[0], *, cluster: str = "") -> Call:
    return Call(request_id=RequestId(1), request=request, cluster=cluster)


def hits(faults: FaultInjector, count: int, *, now: int = 0) -> list[int]:
    """Which of so many equal calls are hit, counted from 1."""
    return [
        number
        for number in range(1, count + 1)
        if faults.effects_for_call(a_call(), Ms(now)) == (SLOW,)
    ]


def effects(
    faults: FaultInjector, calls: Sequence[tuple[Call, Ms]]
) -> list[tuple[CallEffect, ...]]:
    return [faults.effects_for_call(call, now) for call, now in calls]


def matching_verbs(when: FaultSelector) -> list[str]:
    """The verbs of the requests that a fault hits."""
    faults = FaultInjector([CallFault(SLOW, when)])
    return [
        request_verb(request)
        for request in REQUESTS
        if faults.effects_for_call(a_call(request), Ms(0))
    ]


def test_without_faults_nothing_happens() -> None:
    faults = FaultInjector()

    assert faults.effects_for_call(a_call(), Ms(0)) == ()
    assert faults.timed_faults() == ()


def test_every_request_of_a_cluster_has_a_verb() -> None:
    assert tuple(request_verb(request) for request in REQUESTS) == VERBS


@pytest.mark.parametrize(
    ("when", "verbs"),
    [
        (FaultSelector(), list(VERBS)),
        (FaultSelector(verbs=("get", "create")), ["create", "get"]),
        (FaultSelector(kind="Secret"), ["get"]),
        (FaultSelector(kind="Deployment", group="apps"), [*Verb, "list", "watch"]),
        (FaultSelector(kind="Deployment", group="extensions"), []),
        (FaultSelector(group=""), ["get", "logs"]),
        (FaultSelector(namespace="shop"), [*Verb, "get", "watch", "logs"]),
        (FaultSelector(namespace=""), ["list"]),
        (FaultSelector(name="web"), [*Verb]),
        (FaultSelector(manager="tidegate"), [*Verb]),
        (FaultSelector(manager="kubectl"), []),
        (FaultSelector(cluster=""), list(VERBS)),
        (FaultSelector(cluster="prod"), []),
    ],
)
def test_a_fault_hits_requests_that_match_all_of_its_selector(
    when: FaultSelector, verbs: list[str]
) -> None:
    assert matching_verbs(when) == verbs


@pytest.mark.parametrize(
    ("fields", "is_hit"),
    [
        ("metadata.name=web", True),
        ("metadata.name==web", True),
        ("metadata.namespace=shop,metadata.name=web", True),
        ("metadata.name!=web", False),
        ("metadata.name=db", False),
        ("", False),
    ],
)
def test_a_selection_has_the_name_of_its_field_selector(fields: str, is_hit: bool) -> None:  # noqa: FBT001
    when = FaultSelector(name="web")

    assert (
        when.matches_watch(Selection(DEPLOYMENT, "shop", field_selector=fields), cluster="")
        is is_hit
    )


def test_faults_do_not_affect_local_work() -> None:
    faults = FaultInjector([CallFault(SLOW), TimedFault(Ms(0), Outage())])

    assert faults.effects_for_call(a_call(RunWorker("render")), Ms(0)) == ()


@given(every=st.integers(1, 9), times=st.none() | st.integers(1, 5), count=st.integers(0, 60))
def test_every_nth_call_is_hit_up_to_the_limit(every: int, times: int | None, count: int) -> None:
    faults = FaultInjector([CallFault(SLOW, frequency=Frequency(every=every, times=times))])

    assert hits(faults, count) == list(range(every, count + 1, every))[:times]


@pytest.mark.parametrize("probability", [0.0, 0.05, 0.5, 0.9, 1.0])
def test_the_share_of_hits_is_about_the_probability(probability: float) -> None:
    for seed in range(5):
        faults = FaultInjector(
            [CallFault(SLOW, frequency=Frequency(probability=probability))], seed=seed
        )

        share = len(hits(faults, 4_000)) / 4_000

        assert share == pytest.approx(probability, abs=0.04)
        assert share in {0.0, 1.0} or 0 < probability < 1


def test_the_seed_and_the_position_determine_the_affected_calls() -> None:
    fault = CallFault(SLOW, frequency=Frequency(probability=0.5))
    elsewhere = CallFault(SLOW, FaultSelector(cluster="elsewhere"))

    drawn = [
        hits(FaultInjector([fault], seed=1), 100),
        hits(FaultInjector([fault], seed=2), 100),
        hits(FaultInjector([elsewhere, fault], seed=1), 100),
    ]

    assert all(first != second for first, second in zip(drawn, [*drawn[1:], drawn[0]], strict=True))


def test_a_fault_that_is_added_at_the_end_changes_nothing_before_it() -> None:
    fault = CallFault(SLOW, frequency=Frequency(probability=0.5))
    alone, followed = FaultInjector([fault]), FaultInjector([fault, CallFault(Rejection(ERROR))])

    calls = [(a_call(), Ms(0))] * 50

    assert effects(alone, calls) == [effect[:-1] for effect in effects(followed, calls)]


def test_calls_outside_the_window_are_neither_hit_nor_counted() -> None:
    often = Frequency(every=2, start=Ms(100), until=Ms(200))
    faults = FaultInjector([CallFault(SLOW, frequency=often)], start=Ms(1_000))

    result = [hits(faults, 1, now=now) for now in (1_099, 1_100, 1_199, 1_199, 1_200, 1_200)]

    assert result == [[], [], [1], [], [], []]


def test_a_call_may_be_hit_by_many_faults_in_the_order_of_the_file() -> None:
    faults = FaultInjector(
        [
            CallFault(SLOW),
            CallFault(ResponseLoss(is_performed=True)),
            CallFault(Rejection(CONFLICT)),
        ]
    )

    result = faults.effects_for_call(a_call(), Ms(0))

    assert result == (SLOW, ResponseLoss(is_performed=True), Rejection(CONFLICT))


def test_a_cluster_that_is_down_answers_no_call_and_counts_none() -> None:
    faults = FaultInjector(
        [
            CallFault(SLOW, frequency=Frequency(times=1)),
            TimedFault(Ms(10), Outage(until=Ms(20)), FaultSelector(cluster="prod")),
        ],
        start=Ms(1_000),
    )
    call = a_call(cluster="prod")

    result = [faults.effects_for_call(call, Ms(now)) for now in (1_010, 1_019, 1_020)]

    assert result == [(Rejection(UNREACHABLE),), (Rejection(UNREACHABLE),), (SLOW,)]
    assert faults.effects_for_call(a_call(cluster="staging"), Ms(1_015)) == ()


def test_a_cluster_is_down_while_any_outage_lasts() -> None:
    faults = FaultInjector(
        [
            TimedFault(Ms(10), Outage(Ms(30))),
            TimedFault(Ms(20), Outage(), FaultSelector(cluster="prod")),
        ]
    )

    assert [faults.is_down("prod", Ms(now)) for now in (9, 10, 30)] == [False, True, True]
    assert [faults.is_down("other", Ms(now)) for now in (9, 10, 30)] == [False, True, False]


def test_timed_faults_are_sorted_and_in_the_time_of_the_world() -> None:
    prod = FaultSelector(cluster="prod")
    faults = FaultInjector(
        [
            TimedFault(Ms(30), Compaction()),
            CallFault(SLOW),
            TimedFault(Ms(5), Outage(until=Ms(30)), prod),
            TimedFault(Ms(5), StreamSilence(), FaultSelector(kind="Job")),
        ],
        start=Ms(1_000),
    )

    assert faults.timed_faults() == (
        TimedFault(Ms(1_005), Outage(until=Ms(30)), prod),
        TimedFault(Ms(1_005), StreamSilence(), FaultSelector(kind="Job")),
        TimedFault(Ms(1_030), Compaction()),
        TimedFault(Ms(1_030), Recovery(), prod),
    )


@pytest.mark.parametrize(
    ("when", "is_hit"),
    [
        (FaultSelector(), True),
        (FaultSelector(cluster="prod", kind="Deployment", group="apps", namespace="shop"), True),
        (FaultSelector(cluster="staging"), False),
        (FaultSelector(kind="Job"), False),
        (FaultSelector(namespace="mail"), False),
    ],
)
def test_a_timed_fault_hits_matching_watches(when: FaultSelector, is_hit: bool) -> None:  # noqa: FBT001
    watched = Selection(DEPLOYMENT, "shop")

    assert when.matches_watch(watched, cluster="prod") is is_hit


calls = st.tuples(
    st.builds(a_call, st.sampled_from(REQUESTS), cluster=st.sampled_from(["", "prod"])),
    st.integers(0, 100).map(Ms),
)
oftens = st.builds(
    Frequency,
    every=st.integers(1, 4),
    probability=st.none() | st.floats(0, 1),
    times=st.none() | st.integers(1, 3),
    start=st.integers(0, 50).map(Ms),
    until=st.none() | st.integers(51, 100).map(Ms),
)
matches = st.builds(
    FaultSelector,
    cluster=st.none() | st.just("prod"),
    verbs=st.lists(st.sampled_from(VERBS), max_size=2).map(tuple),
    kind=st.none() | st.sampled_from(["Deployment", "Secret"]),
)
call_effects: st.SearchStrategy[CallEffect] = st.sampled_from(
    [SLOW, Rejection(ERROR), ResponseLoss(is_performed=False), StreamDrop(Ms(3)), StreamSilence()]
)
faults_of_all_sorts: st.SearchStrategy[Fault] = st.builds(
    CallFault, call_effects, matches, oftens
) | st.builds(
    TimedFault, st.integers(0, 50).map(Ms), st.just(Outage(Ms(60))), st.just(FaultSelector())
)


@given(
    rules=st.lists(faults_of_all_sorts, max_size=4),
    sequence=st.lists(calls, max_size=30),
    seed=st.integers(),
)
def test_the_same_seed_and_the_same_calls_have_the_same_faults(
    rules: list[Fault], sequence: list[tuple[Call, Ms]], seed: int
) -> None:
    first, second = FaultInjector(rules, seed=seed), FaultInjector(rules, seed=seed)

    assert effects(first, sequence) == effects(second, sequence)
    assert first.timed_faults() == second.timed_faults()


def test_random_hits_are_the_same_on_every_machine() -> None:
    faults = FaultInjector([CallFault(SLOW, frequency=Frequency(probability=0.3))], seed=7)

    assert hits(faults, 30) == [1, 2, 4, 13, 14, 15, 24, 29, 30]
