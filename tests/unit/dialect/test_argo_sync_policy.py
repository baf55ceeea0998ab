"""How an Application is synced: what starts it, prunes, heals, tries again, and is ignored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.dialect.applications import codes, declared, policy, unit
from tidegate.dialect.argo.options import UNIT_OPTIONS, with_sync_options
from tidegate.dialect.argo.sync_policy import UNLIMITED
from tidegate.dialect.semantics import with_semantics
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import MINUTE, SECOND
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.policy import Policy
from tidegate.model.units.semantics import ARGOCD, TIDEGATE, Retry

SYNC_OPTIONS = [f"{name}={value}" for name, values in UNIT_OPTIONS.items() for value in values]
ALL: JsonObject = {"prune": True, "selfHeal": True, "allowEmpty": True}


@pytest.mark.parametrize(
    ("automated", "starts"),
    [
        (None, False),
        ({}, True),
        ({"enabled": True}, True),
        ({"enabled": None}, True),
        ({"enabled": False}, False),
    ],
)
def test_an_application_starts_by_itself_where_it_is_automated(
    automated: Json,
    starts: bool,  # noqa: FBT001
) -> None:
    assert policy(automated=automated).auto_sync is starts


def test_automated_sync_prunes_and_heals_if_enabled() -> None:
    bare, full = policy(automated={}), policy(automated=ALL)

    assert (bare.prune, bare.self_heal, bare.allow_empty) == (False, False, False)
    assert (full.prune, full.self_heal, full.allow_empty) == (True, True, True)


def test_disabled_automated_sync_neither_prunes_nor_heals() -> None:
    off = policy(automated={**ALL, "enabled": False})

    assert (off.prune, off.self_heal, off.allow_empty) == (False, False, False)


def test_without_a_retry_policy_the_semantics_apply() -> None:
    assert policy(automated={}).retry is None


def test_a_retry_without_backoff_has_the_default_of_argo_cd() -> None:
    assert policy(retry={"limit": 5}).retry == ARGOCD.retry


def test_a_retry_policy_has_a_limit_and_a_backoff() -> None:
    backoff: JsonObject = {"duration": "10s", "factor": 3, "maxDuration": "5m"}

    result = policy(retry={"limit": 2, "backoff": backoff}).retry

    assert result is not None
    assert result.limit == 2
    assert [result.delay(attempt) // SECOND for attempt in (1, 2, 3, 4)] == [30, 90, 270, 300]


@pytest.mark.parametrize(
    ("duration", "first"), [("5", 10 * SECOND), ("1m", 2 * MINUTE), ("", 10 * SECOND), ("-5s", 0)]
)
def test_a_pause_without_a_unit_is_in_seconds(duration: str, first: int) -> None:
    result = policy(retry={"limit": 1, "backoff": {"duration": duration}}).retry

    assert result is not None
    assert result.backoff == first


def test_a_negative_limit_retries_forever_and_a_zero_maximum_is_unlimited() -> None:
    result = policy(retry={"limit": -1, "refresh": True, "backoff": {"maxDuration": "0"}}).retry

    assert result is not None
    assert (result.limit, result.backoff_limit) == (UNLIMITED, UNLIMITED)


def test_a_retry_limit_applies_to_all_semantics() -> None:
    ruled = with_semantics(policy(retry={"limit": 2}), TIDEGATE).semantics.retry

    assert ruled == Retry(
        limit=2, backoff=ARGOCD.retry.backoff, factor=2, backoff_limit=ARGOCD.retry.backoff_limit
    )


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        ({}, "warning argo.retry at spec.syncPolicy.retry.limit"),
        (
            {"limit": 1, "backoff": {"duration": "soon"}},
            "error argo.retry at spec.syncPolicy.retry.backoff.duration",
        ),
        (
            {"limit": 1, "backoff": {"maxDuration": "1d"}},
            "error argo.retry at spec.syncPolicy.retry.backoff.maxDuration",
        ),
        (
            {"limit": 1, "backoff": {"factor": 0}},
            "warning argo.retry at spec.syncPolicy.retry.backoff.factor",
        ),
    ],
)
def test_a_retry_that_does_not_retry_is_reported(retry: JsonObject, expected: str) -> None:
    assert codes(declared(syncPolicy={"retry": retry}).findings) == [expected]


@given(st.lists(st.sampled_from(SYNC_OPTIONS)))
def test_sync_options_are_read_from_the_list(options: list[str]) -> None:
    result, expected = policy(syncOptions=[*options]), with_sync_options(Policy(), tuple(options))

    assert result.object_options == expected.object_options
    for name in (
        "create_namespace",
        "apply_out_of_sync_only",
        "fail_on_shared_resource",
        "keep_other_appliers",
    ):
        assert getattr(result, name) == getattr(expected, name)
    assert result.respect_ignore_differences == expected.respect_ignore_differences


@pytest.mark.parametrize("option", ["CreateNamespaces=true", "Prune", "Force=true", " Prune=false"])
def test_an_option_that_does_nothing_is_reported(option: str) -> None:
    (finding,) = declared(syncPolicy={"syncOptions": ["Validate=false", option]}).findings

    assert codes([finding]) == ["warning argo.option at spec.syncPolicy.syncOptions[1]"]
    assert finding.reason


def test_a_namespace_that_is_created_has_labels_and_annotations() -> None:
    metadata: JsonObject = {"labels": {"team": "a"}, "annotations": {"note": "b"}}

    result = policy(syncOptions=["CreateNamespace=true"], managedNamespaceMetadata=metadata)

    assert result.namespace_labels == (("team", "a"),)
    assert result.namespace_annotations == (("note", "b"),)


def test_labels_of_a_namespace_that_is_not_created_are_reported() -> None:
    result = declared(syncPolicy={"managedNamespaceMetadata": {"labels": {"team": "a"}}})

    assert codes(result.findings) == [
        "warning argo.namespace at spec.syncPolicy.managedNamespaceMetadata"
    ]


def test_ignore_differences_can_come_from_a_file() -> None:
    entries: list[Json] = [
        {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]},
        {
            "kind": "*",
            "name": "web",
            "namespace": "shop",
            "jqPathExpressions": ["no jq ("],
            "managedFieldsManagers": ["scaler"],
        },
    ]

    assert unit(ignoreDifferences=entries).policy.ignore_differences == (
        IgnoreDifference(group="apps", kind="Deployment", pointers=("/spec/replicas",)),
        IgnoreDifference(
            kind="*",
            name="web",
            namespace="shop",
            expressions=("no jq (",),
            managers=("scaler",),
        ),
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"kind": "Pod"}, ["warning argo.ignored at spec.ignoreDifferences[0]"]),
        (
            {"kind": "Pod", "jsonPointers": ["spec"]},
            ["warning argo.ignored at spec.ignoreDifferences[0].jsonPointers[0]"],
        ),
    ],
)
def test_an_entry_that_ignores_nothing_is_reported(entry: Json, expected: list[str]) -> None:
    assert codes(declared(ignoreDifferences=[entry]).findings) == expected
