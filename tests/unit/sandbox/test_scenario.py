"""Scenario files, and the errors that mistakes in them cause."""

from __future__ import annotations

from textwrap import shorten

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import TidegateError
from tidegate.model.simulation.preinstalled import GivenKind, GivenOperator
from tidegate.model.times import Ms
from tidegate.sandbox.faults import (
    CONFLICT,
    ERROR,
    WRITES,
    CallFault,
    Compaction,
    Delay,
    Fault,
    FaultSelector,
    Frequency,
    Outage,
    Rejection,
    ResponseLoss,
    StreamDrop,
    StreamSilence,
    TimedFault,
    too_many_requests,
)
from tidegate.sandbox.scenario import Scenario, read_scenario


def fault_of(text: str) -> Fault:
    (fault,) = read_scenario(f"faults:\n- {{{text}}}\n".encode(), "s.yaml").faults
    return fault


def errors_of(text: str) -> list[TidegateError]:
    with pytest.raises(ExceptionGroup) as caught:
        read_scenario(text.encode(), "s.yaml")
    return [error for error in caught.value.exceptions if isinstance(error, TidegateError)]


def error_of(text: str) -> TidegateError:
    (error,) = errors_of(f"seed: 1\nfaults:\n- {{{text}}}\n")
    assert isinstance(error, TidegateError)
    assert error.hint
    return error


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "faults: []\n", "faults:\nseed: 0\n"])
def test_a_scenario_may_be_empty(text: str) -> None:
    assert read_scenario(text.encode(), "s.yaml") == Scenario(seed=0, faults=())


def test_a_scenario_has_a_seed_and_its_faults_in_order() -> None:
    text = b"seed: 7\nfaults:\n- effect: error\n- effect: compact\n  at: 1m\n"

    scenario = read_scenario(text, "s.yaml")

    assert scenario == Scenario(
        seed=7, faults=(CallFault(Rejection(ERROR)), TimedFault(Ms(60_000), Compaction()))
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("effect: conflict", CallFault(Rejection(CONFLICT), FaultSelector(verbs=WRITES))),
        ("effect: throttle", CallFault(Rejection(too_many_requests(Ms(1_000))))),
        ("effect: throttle, after: 1m", CallFault(Rejection(too_many_requests(Ms(60_000))))),
        ("effect: error", CallFault(Rejection(ERROR))),
        ("effect: slow, by: 1.5s", CallFault(Delay(Ms(1_500)))),
        ("effect: lose-before", CallFault(ResponseLoss(is_performed=False))),
        ("effect: lose-after", CallFault(ResponseLoss(is_performed=True))),
        ("effect: drop-watches", CallFault(StreamDrop(), FaultSelector(verbs=("watch",)))),
        (
            "effect: drop-watches, after: 2s, when: {kind: Job}",
            CallFault(StreamDrop(Ms(2_000)), FaultSelector(verbs=("watch",), kind="Job")),
        ),
        (
            "effect: drop-watches, at: 30s, when: {kind: Job, group: batch}",
            TimedFault(Ms(30_000), StreamDrop(), FaultSelector(kind="Job", group="batch")),
        ),
        ("effect: silence-watches, at: 0", TimedFault(Ms(0), StreamSilence())),
        (
            "effect: silence-watches, at: 1s, for: 2s",
            TimedFault(Ms(1_000), StreamSilence(Ms(2_000))),
        ),
        (
            "effect: silence-watches, after: 1s, for: 2s, every: 2",
            CallFault(
                StreamSilence(Ms(2_000), Ms(1_000)),
                FaultSelector(verbs=("watch",)),
                frequency=Frequency(every=2),
            ),
        ),
        (
            "effect: compact, at: 5m, when: {cluster: prod}",
            TimedFault(Ms(300_000), Compaction(), FaultSelector(cluster="prod")),
        ),
        ("effect: down, from: 10s, until: 25s", TimedFault(Ms(10_000), Outage(Ms(25_000)))),
        ("effect: down, from: 10s", TimedFault(Ms(10_000), Outage())),
    ],
)
def test_an_effect_is_read_with_its_own_keys(text: str, fault: Fault) -> None:
    assert fault_of(text) == fault


@pytest.mark.parametrize(
    ("text", "frequency"),
    [
        ("every: 3", Frequency(every=3)),
        ("every: 3, times: 2", Frequency(every=3, times=2)),
        ("probability: 0.1, times: 2", Frequency(probability=0.1, times=2)),
        ("probability: 1", Frequency(probability=1.0)),
        ("from: 0, until: 1m30s", Frequency(until=Ms(90_000))),
        ("from: 1h", Frequency(start=Ms(3_600_000))),
    ],
)
def test_a_fault_has_a_frequency(text: str, frequency: Frequency) -> None:
    assert fault_of(f"effect: error, {text}") == CallFault(Rejection(ERROR), frequency=frequency)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("verb: get", FaultSelector(verbs=("get",))),
        ("verb: [get, list]", FaultSelector(verbs=("get", "list"))),
        (
            'cluster: prod, kind: Secret, group: "", namespace: shop, name: db',
            FaultSelector(cluster="prod", kind="Secret", group="", namespace="shop", name="db"),
        ),
        ("manager: tidegate", FaultSelector(verbs=WRITES, manager="tidegate")),
        ("manager: tidegate, verb: apply", FaultSelector(verbs=("apply",), manager="tidegate")),
    ],
)
def test_a_fault_has_a_selector(text: str, when: FaultSelector) -> None:
    assert fault_of(f"effect: error, when: {{{text}}}") == CallFault(Rejection(ERROR), when)


MISTAKES = [
    ("effects: error", "missing", "faults[0]"),
    ("effect: throttled", "value", "effect"),
    ("effect: [error]", "type", "effect"),
    ("effect: error, every-nth: 3", "key", "every-nth"),
    ("effect: error, by: 3s", "key", "by"),
    ("effect: error, when: x", "type", "when"),
    ("effect: error, when: {knd: Job}", "key", "when.knd"),
    ("effect: down, when: {kind: Job}", "key", "when.kind"),
    ("effect: error, when: {name: 7}", "type", "when.name"),
    ("effect: error, when: {verb: [get, 7]}", "type", "when.verb[1]"),
    ("effect: error, when: {verb: post}", "value", "when.verb"),
    ("effect: conflict, when: {verb: get}", "contradiction", "when.verb"),
    ("effect: error, when: {verb: get, manager: me}", "contradiction", "when.verb"),
    ("effect: error, every: 0", "value", "every"),
    ("effect: error, every: 1.5", "type", "every"),
    ("effect: error, every: true", "type", "every"),
    ("effect: error, times: -1", "value", "times"),
    ("effect: error, probability: 1.5", "value", "probability"),
    ("effect: error, probability: high", "type", "probability"),
    ("effect: error, every: 2, probability: 0.1", "contradiction", "probability"),
    ("effect: error, from: 2s, until: 1s", "contradiction", "until"),
    ("effect: drop-watches, at: 2s, every: 2", "contradiction", "every"),
    ("effect: drop-watches, at: 2s, after: 1s", "contradiction", "after"),
    ("effect: compact", "missing", "faults[0]"),
    ("effect: slow", "missing", "faults[0]"),
    ("effect: slow, by: 2", "duration", "by"),
    ("effect: slow, by: true", "duration", "by"),
    ("effect: slow, by: {}", "duration", "by"),
    ("effect: slow, by: soon", "duration", "by"),
    ("effect: slow, by: 1us", "duration", "by"),
    ("effect: slow, by: -2s", "value", "by"),
    ("effect: throttle, after: 1500ms", "value", "after"),
    ("effect: throttle, after: 0s", "value", "after"),
]


@pytest.mark.parametrize(("text", "code", "field"), MISTAKES, ids=[text for text, *_ in MISTAKES])
def test_a_mistake_is_one_error_at_its_key(
    text: str, code: str, field: str, wording: RecordedWording
) -> None:
    error = error_of(text)

    assert error.code == (f"scenario.{code}" if code == "contradiction" else f"file.{code}")
    wording(error.problem)
    assert error.location is not None
    assert (error.location.name, error.location.line) == ("s.yaml", 3)
    assert error.location.field == (field if field == "faults[0]" else f"faults[0].{field}")


@pytest.mark.parametrize(
    "text", ["effect: throttled", "effect: error, every-nth: 3", "effect: sharks"]
)
def test_a_similar_name_is_suggested(text: str, wording: RecordedWording) -> None:
    wording(error_of(text).hint)


def test_all_mistakes_are_reported_at_once_by_line() -> None:
    errors = errors_of(
        "faults:\n"
        "- effect: slow\n"
        "  by: 2\n"
        "  every: 0\n"
        "- 7\n"
        "- effect: sharks\n"
        "- effect: error\n"
        "  times: 1\n"
        "  times: 2\n"
        "sed: 3\n"
    )

    assert [(error.code, error.location.line if error.location else 0) for error in errors] == [
        ("file.duration", 3),
        ("file.value", 4),
        ("file.type", 5),
        ("file.value", 6),
        ("file.duplicate", 9),
        ("file.key", 10),
    ]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("- effect: error\n", "file.type", 1),
        ("faults: error\n", "file.type", 1),
        ("seed: x\n", "file.type", 1),
        ("seed: 1\n---\nseed: 2\n", "file.documents", 3),
        ("seed: [1\n", "documents.syntax", 1),
    ],
)
def test_a_file_of_the_wrong_shape_is_one_error(text: str, code: str, line: int) -> None:
    (error,) = errors_of(text)

    assert error.code == code
    assert error.exit_code == 3
    assert error.location is not None
    assert error.location.line == line


def test_a_preinstalled_operator_has_a_name_and_may_have_a_namespace() -> None:
    text = b"given:\n  operators:\n  - cert-manager\n  - {name: flux, namespace: gitops}\n"

    given = read_scenario(text, "s.yaml").given

    assert given.operators == (GivenOperator("cert-manager"), GivenOperator("flux", "gitops"))
    assert given.objects == ()


def test_an_operator_of_a_user_is_known_besides_the_builtin_ones() -> None:
    text = b"given: {operators: [ours, strimzi]}\n"

    given = read_scenario(text, "s.yaml", operators=["ours"]).given

    assert [operator.name for operator in given.operators] == ["ours", "strimzi"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[certmanager]", "value"),
        ("[{operator: flux}]", "missing"),
        ("[flux, {name: flux}]", "contradiction"),
        ("[{name: 7}]", "type"),
        ("[7]", "type"),
        ("flux", "type"),
    ],
)
def test_an_invalid_operator_is_reported_with_its_line(
    text: str, code: str, wording: RecordedWording
) -> None:
    error = errors_of(f"given:\n  operators: {text}\n")[0]

    group = "scenario" if code == "contradiction" else "file"
    assert error.code == f"{group}.{code}"
    assert error.location is not None
    assert error.location.line == 2
    wording([error.problem, shorten(error.hint, width=60, placeholder=" …")])


def test_kinds_namespaces_and_names_can_be_given() -> None:
    text = b"""
given:
  kinds: [example.com/v1/Boat, {name: example.com/v1/Fleet, cluster_wide: true}]
  namespaces: [shop]
  names: {Secret: [shop/db], ClusterIssuer.cert-manager.io: [own]}
"""
    given = read_scenario(text, "s.yaml").given

    assert given.kinds == (
        GivenKind("example.com/v1/Boat"),
        GivenKind("example.com/v1/Fleet", cluster_wide=True),
    )
    assert given.namespaces == ("shop",)
    assert given.names == {"Secret": ("shop/db",), "ClusterIssuer.cert-manager.io": ("own",)}


@pytest.mark.parametrize("kind", ["Boat", "v1/Pod", "example.com/Boat"])
def test_a_kind_that_is_given_has_a_group_a_version_and_a_name(kind: str) -> None:
    (error,) = errors_of(f"given: {{kinds: [{kind}]}}\n")

    assert error.code == "file.value"
    assert f"`{kind}`" in error.problem
    assert "GROUP/VERSION/KIND" in error.problem
