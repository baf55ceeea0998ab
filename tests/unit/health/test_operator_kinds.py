"""Every kind that we have a row for and Argo CD no script: healthy, progressing and degraded.

A row that is added needs bodies for all three. Kinds whose operators never say that something has
failed for good are listed, so that one which only forgot it is found.
"""

from __future__ import annotations

import re

import pytest

from tests.unit.health.test_simulated_operators import JUDGE, a_body, a_status
from tidegate.health.argo import builtin_rows
from tidegate.health.argo.judge import RULES
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health
from tidegate.model.operators.rows import Check, HealthCase, KindRow
from tidegate.model.times import Ms

KINDS_WITHOUT_SCRIPT = [
    (row, kind)
    for row in load_builtin_knowledge().rows
    for kind in row.kinds
    if row.group != "*"
    and row.ready_when
    and (row.group, kind) not in RULES
    and builtin_rows().find(row.group, kind) is None
]
NEVER_FAILED = {
    "agent.k8s.elastic.co": "red is what it is at first, too",
    "apm.k8s.elastic.co": "red is what it is at first, too",
    "enterprisesearch.k8s.elastic.co": "red is what it is at first, too",
    "kibana.k8s.elastic.co": "red is what it is at first, too",
    "maps.k8s.elastic.co": "red is what it is at first, too",
    "externaldns.k8s.io": "it only reports what it has observed",
    "gateway.envoyproxy.io": "what is not accepted may be, when its target comes",
    "gateway.networking.k8s.io": "what is not accepted may be, when its Gateway comes",
    "kinda.rocks": "it is connected, or not yet",
    "kyverno.io": "it is ready, or not yet",
    "policies.kyverno.io": "it is ready, or not yet",
    "secrets.hashicorp.com": "it is tried again for ever",
    "templates.gatekeeper.sh": "it is created, or not yet",
    "temporal.io": "it is ready, or not yet",
    "postgres-operator.crunchydata.com": "it counts its instances",
    "trust-manager.io": "it is synced, or not yet",
    "trust.cert-manager.io": "it is synced, or not yet",
    "vault.banzaicloud.com": "it counts its pods",
    "databases.spotahome.com": "it counts its pods",
    "argoproj.io/Application": "its own status has a health",
    "external-secrets.io/ClusterPushSecret": "it is tried again for ever",
    "k8s.mariadb.com/Connection": "it is tried again for ever",
    "k8s.mariadb.com/MaxScale": "it is ready, or not yet",
    "k8s.mariadb.com/PhysicalBackup": "it is complete, or not yet",
    "k8s.mariadb.com/Restore": "it is complete, or not yet",
    "kafka.strimzi.io/KafkaNodePool": "its Kafka reports it",
    "longhorn.io/BackupTarget": "it is available, or not yet",
    "pgv2.percona.com/PerconaPGCluster": "it has no state for that",
    "postgresql.cnpg.io/Pooler": "it counts its pods",
}
"""By group, or group and kind: why its status cannot say that it has failed."""


HEAD = re.compile(r"[^.\[]+(\[[^\]]*\])?")


def with_value(body: dict[str, Json], place: str, value: Json) -> dict[str, Json]:
    """The body with this value at a place such as `status.conditions[type=Ready].reason`."""
    head_match = HEAD.match(place)
    assert head_match is not None
    head, rest = head_match.group(), place[head_match.end() + 1 :]
    name, sign, which = head.partition("[")
    if not sign:
        inner = with_value(get_mapping(body, name), rest, value) if rest else value
        return {**body, name: inner}
    key, _, expected = which.rstrip("]").partition("=")
    result = get_value(body, name)
    items = (
        [dict(item) for item in result if isinstance(item, dict)]
        if isinstance(result, list)
        else []
    )
    item: dict[str, Json] = next(
        (item for item in items if item.get(key) == expected), {key: expected}
    )
    changed: list[Json] = [item for item in items if item.get(key) != expected]
    return {**body, name: [*changed, with_value(item, rest, value)]}


def value_for(check: Check) -> Json:
    """One that the check holds of."""
    if not check.negated:
        return check.expected_values[0]
    return "False" if check.condition else "Anything"


def a_failure(
    row: KindRow, kind: str, case: HealthCase, within: HealthCase | None
) -> dict[str, Json]:
    """A body that a case is written for, and no other of its row is."""
    status = a_status(row, row.group, kind, 0)
    body = a_body(row.group, kind, status)
    for check in case.when:
        place = check.target_path
        if within is not None:
            place = f"{within.among}[type=It]{place.removeprefix('item')}"
        if not check.absent:
            body = with_value(body, place, value_for(check))
    return body


@pytest.mark.parametrize(
    ("row", "kind"), KINDS_WITHOUT_SCRIPT, ids=lambda item: str(getattr(item, "group", item))
)
def test_each_known_kind_can_be_healthy_progressing_or_degraded(row: KindRow, kind: str) -> None:
    done = a_body(row.group, kind, a_status(row, row.group, kind, -1))
    new = a_body(row.group, kind, {})
    failures = [
        a_failure(row, kind, case, within)
        for outer in row.cases
        for case, within in ((outer, None), *((item, outer) for item in outer.first))
        if case.health is Health.DEGRADED
    ]

    assert JUDGE.judge(done, Ms(0)).health is Health.HEALTHY
    assert JUDGE.judge(new, Ms(0)).health is Health.PROGRESSING
    states = [JUDGE.judge(body, Ms(0)).health for body in failures]
    assert set(states) <= {Health.DEGRADED}, failures
    never_fails = row.group in NEVER_FAILED or f"{row.group}/{kind}" in NEVER_FAILED
    assert bool(states) is not never_fails


def test_a_row_names_its_source_and_how_it_was_checked() -> None:
    assert [row for row, _ in KINDS_WITHOUT_SCRIPT if not (row.checked and row.source)] == []
