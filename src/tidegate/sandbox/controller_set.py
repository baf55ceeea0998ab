"""The controllers of a simulated cluster: control plane, kubelet and operators."""

from __future__ import annotations

from tidegate.model.operators.rows import Knowledge
from tidegate.sandbox.controllers.batch.cron_job import CRON_JOBS
from tidegate.sandbox.controllers.batch.job import JOB_CONTROLLERS
from tidegate.sandbox.controllers.core import API_CONTROLLERS
from tidegate.sandbox.controllers.external_status import EXTERNAL_STATUS_CONTROLLERS
from tidegate.sandbox.controllers.interface import Controller, ObjectReader
from tidegate.sandbox.controllers.selectors import SELECTOR_CONTROLLERS
from tidegate.sandbox.controllers.storage.volumes import STORAGE_CONTROLLERS, provisioner_controller
from tidegate.sandbox.controllers.workloads.daemon_set import DAEMON_SETS
from tidegate.sandbox.controllers.workloads.deployment import DEPLOYMENTS
from tidegate.sandbox.controllers.workloads.replica_set import REPLICA_SETS
from tidegate.sandbox.controllers.workloads.stateful_set import STATEFUL_SETS
from tidegate.sandbox.node.kubelet.pod import kubelet_controller
from tidegate.sandbox.node.profile import Profile
from tidegate.sandbox.operators.availability import unready_reason
from tidegate.sandbox.operators.ca_injection import ca_injection_controller
from tidegate.sandbox.operators.interpreter import apply_stage_rules, operator_controller
from tidegate.sandbox.server.store import StoredObject

CONTROLLERS = (
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    *JOB_CONTROLLERS,
    CRON_JOBS,
    *STORAGE_CONTROLLERS,
    *SELECTOR_CONTROLLERS,
    *EXTERNAL_STATUS_CONTROLLERS,
)
"""Controllers of kube-controller-manager, and the external status of some kinds."""


def build_controllers(
    profile: Profile, knowledge: Knowledge, *, factor: float = 1
) -> tuple[Controller, ...]:
    """Return all controllers, with durations from a profile and operators from the knowledge.

    `factor` multiplies the durations of operators.
    """
    kubelet_and_operators = build_kubelet_and_operators(profile, knowledge, factor=factor)
    return (*API_CONTROLLERS, *CONTROLLERS, provisioner_controller(), *kubelet_and_operators)


def build_kubelet_and_operators(
    profile: Profile, knowledge: Knowledge, *, factor: float = 1, record_pulls: bool = False
) -> tuple[Controller, ...]:
    """Return the controllers that are not part of a control plane: the kubelet and the operators.

    With `record_pulls`, the kubelet records an Event for each image pull.
    """
    blockers = knowledge.holds[::-1]

    def find_unready_reason(reader: ObjectReader, pod: StoredObject) -> str:
        return unready_reason(reader, pod, blockers)

    rows = apply_stage_rules(knowledge.rows, profile.stages, factor)
    kubelet = kubelet_controller(
        profile, unready_reason=find_unready_reason, record_pulls=record_pulls
    )
    return (kubelet, operator_controller(rows), ca_injection_controller(rows))
