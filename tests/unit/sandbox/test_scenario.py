"""What a scenario file means, and what is said when it means nothing."""

from __future__ import annotations

import pytest

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
    ("text", "often"),
    [
        ("every: 3", Frequency(every=3)),
        ("every: 3, times: 2", Frequency(every=3, times=2)),
        ("probability: 0.1, times: 2", Frequency(probability=0.1, times=2)),
        ("probability: 1", Frequency(probability=1.0)),
        ("from: 0, until: 1m30s", Frequency(until=Ms(90_000))),
        ("from: 1h", Frequency(start=Ms(3_600_000))),
    ],
)
def test_a_fault_says_how_often(text: str, often: Frequency) -> None:
    assert fault_of(f"effect: error, {text}") == CallFault(Rejection(ERROR), frequency=often)


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
def test_a_fault_says_whom_it_meets(text: str, when: FaultSelector) -> None:
    assert fault_of(f"effect: error, when: {{{text}}}") == CallFault(Rejection(ERROR), when)


@pytest.mark.parametrize(
    ("text", "code", "field", "problem"),
    [
        ("effects: error", "missing", "faults[0]", "an entry of `faults` needs `effect`"),
        ("effect: throttled", "value", "effect", "there is no effect `throttled`"),
        ("effect: [error]", "type", "effect", "`effect` must be text"),
        ("effect: error, every-nth: 3", "key", "every-nth", "`error` has no key `every-nth`"),
        ("effect: error, by: 3s", "key", "by", "`error` has no key `by`"),
        ("effect: error, when: x", "type", "when", "`when` must be a mapping"),
        (
            "effect: error, when: {knd: Job}",
            "key",
            "when.knd",
            "`when` of `error` has no key `knd`",
        ),
        (
            "effect: down, when: {kind: Job}",
            "key",
            "when.kind",
            "`when` of `down` has no key `kind`",
        ),
        ("effect: error, when: {name: 7}", "type", "when.name", "`name` must be text"),
        (
            "effect: error, when: {verb: [get, 7]}",
            "type",
            "when.verb[1]",
            "an entry of `verb` must be text, not a whole number",
        ),
        ("effect: error, when: {verb: post}", "value", "when.verb", "there is no verb `post`"),
        (
            "effect: conflict, when: {verb: get}",
            "contradiction",
            "when.verb",
            "`get` is never met: it meets writes only",
        ),
        (
            "effect: error, when: {verb: get, manager: me}",
            "contradiction",
            "when.verb",
            "`get` is never met: only writes have a `manager`",
        ),
        ("effect: error, every: 0", "value", "every", "`every` must be 1 or more, not `0`"),
        ("effect: error, every: 1.5", "type", "every", "`every` must be a whole number"),
        ("effect: error, every: true", "type", "every", "`every` must be a whole number"),
        ("effect: error, times: -1", "value", "times", "`times` must be 1 or more, not `-1`"),
        (
            "effect: error, probability: 1.5",
            "value",
            "probability",
            "`probability` must be from 0 to 1, not `1.5`",
        ),
        (
            "effect: error, probability: high",
            "type",
            "probability",
            "`probability` must be a number",
        ),
        (
            "effect: error, every: 2, probability: 0.1",
            "contradiction",
            "probability",
            "`every` and `probability` rule each other out",
        ),
        (
            "effect: error, from: 2s, until: 1s",
            "contradiction",
            "until",
            "`until` is not later than `from`",
        ),
        (
            "effect: drop-watches, at: 2s, every: 2",
            "contradiction",
            "every",
            "`at` and `every` rule each other out",
        ),
        (
            "effect: drop-watches, at: 2s, after: 1s",
            "contradiction",
            "after",
            "`at` and `after` rule each other out",
        ),
        ("effect: compact", "missing", "faults[0]", "`compact` needs `at`"),
        ("effect: slow", "missing", "faults[0]", "`slow` needs `by`"),
        ("effect: slow, by: 2", "duration", "by", "`by` is `2`, which is not a duration"),
        ("effect: slow, by: true", "duration", "by", "`by` is `True`, which is not a duration"),
        ("effect: slow, by: {}", "duration", "by", "`by` is `…`, which is not a duration"),
        ("effect: slow, by: soon", "duration", "by", "`by` is `soon`, which is not a duration"),
        ("effect: slow, by: 1us", "duration", "by", "`by` is `1us`, which is finer than"),
        (
            "effect: slow, by: -2s",
            "value",
            "by",
            "`by` is `-2s`, and time does not run backwards",
        ),
        ("effect: throttle, after: 1500ms", "value", "after", "must be whole seconds"),
        ("effect: throttle, after: 0s", "value", "after", "`after` must be 1s or more"),
    ],
)
def test_a_mistake_is_one_error_at_its_key(text: str, code: str, field: str, problem: str) -> None:
    error = error_of(text)

    assert error.code == (f"scenario.{code}" if code == "contradiction" else f"file.{code}")
    assert problem in error.problem
    assert error.location is not None
    assert (error.location.name, error.location.line) == ("s.yaml", 3)
    assert error.location.field == (field if field == "faults[0]" else f"faults[0].{field}")


def test_a_word_that_is_nearly_right_is_suggested() -> None:
    assert error_of("effect: throttled").hint.startswith("did you mean `throttle`? there are `conf")
    assert error_of("effect: error, every-nth: 3").hint.startswith("did you mean `every`?")
    assert error_of("effect: sharks").hint.startswith("there are `conflict`, `throttle`,")


def test_all_mistakes_are_told_at_once_by_line() -> None:
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


def test_an_operator_that_is_there_already_is_named_or_told_its_namespace() -> None:
    text = b"given:\n  operators:\n  - cert-manager\n  - {name: flux, namespace: gitops}\n"

    given = read_scenario(text, "s.yaml").given

    assert given.operators == (GivenOperator("cert-manager"), GivenOperator("flux", "gitops"))
    assert given.objects == ()


def test_an_operator_of_a_user_is_known_beside_those_that_are_shipped() -> None:
    text = b"given: {operators: [ours, strimzi]}\n"

    given = read_scenario(text, "s.yaml", operators=["ours"]).given

    assert [operator.name for operator in given.operators] == ["ours", "strimzi"]


@pytest.mark.parametrize(
    ("text", "code", "problem", "hint"),
    [
        ("[certmanager]", "value", "there is no operator `certmanager`", "did you mean `cert-man"),
        (
            "[{operator: flux}]",
            "missing",
            "an entry of `operators` needs `name`",
            "add it: `name` is text",
        ),
        ("[flux, {name: flux}]", "contradiction", "the operator `flux` is given twice", "remove"),
        ("[{name: 7}]", "type", "`name` must be text, not a whole number", "put it in quotes"),
        (
            "[7]",
            "type",
            "an entry of `operators` must be text or a mapping, not a whole number",
            "put it in quotes",
        ),
        ("flux", "type", "`operators` must be a list, not text", "write each entry"),
    ],
)
def test_an_operator_that_cannot_be_there_is_told(
    text: str, code: str, problem: str, hint: str
) -> None:
    error = errors_of(f"given:\n  operators: {text}\n")[0]

    group = "scenario" if code == "contradiction" else "file"
    assert (error.code, error.problem) == (f"{group}.{code}", problem)
    assert error.hint.startswith(hint)
    assert error.location is not None
    assert error.location.line == 2


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
    with pytest.raises(ExceptionGroup) as raised:
        read_scenario(f"given: {{kinds: [{kind}]}}\n".encode(), "s.yaml")

    assert f"`{kind}` is not GROUP/VERSION/KIND" in str(raised.value.exceptions[0])
