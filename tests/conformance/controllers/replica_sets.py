"""Cases of ReplicaSets that stand alone."""

from __future__ import annotations

from tests.conformance.controllers.claims import counts, says
from tests.support.trace_case import Case, Until
from tests.support.trace_workloads import CREW, a_template, a_workload, an_account, scale

REPLICA_SETS = (
    Case(
        "replica-set-is-scaled",
        (CREW,),
        (
            a_workload(CREW, replicas=2),
            Until(CREW, counts(replicas=2, availableReplicas=2)),
            scale(CREW, 4),
            Until(CREW, counts(replicas=4, availableReplicas=4)),
            scale(CREW, 0),
            Until(CREW, counts(replicas=0, availableReplicas=0)),
        ),
    ),
    Case(
        "replica-set-without-its-service-account",
        (CREW,),
        (
            a_workload(CREW, replicas=2, template=a_template(account="builder")),
            Until(CREW, says("ReplicaFailure", "FailedCreate")),
            an_account("builder"),
            Until(CREW, counts(replicas=2, availableReplicas=2)),
        ),
    ),
)
