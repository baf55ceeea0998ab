"""The same cases in the sandbox, with the controllers that are to be vouched for."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_live
from tests.support.instant_kubelet import INSTANT_KUBELET
from tests.support.trace_case import Case
from tests.support.trace_run import Trace, trace
from tidegate.model.k8s.objects import JsonObject
from tidegate.sandbox.controllers.batch.job import FINISHED_JOBS, JOB_PODS, JOBS, ORPHAN_PODS
from tidegate.sandbox.controllers.core import API_CONTROLLERS
from tidegate.sandbox.controllers.external_status import EXTERNAL_STATUS_CONTROLLERS
from tidegate.sandbox.controllers.selectors import DISRUPTION_BUDGETS
from tidegate.sandbox.controllers.storage.claims import CLAIMS, CONSUMERS, PROTECTED_CLAIMS
from tidegate.sandbox.controllers.storage.volumes import VOLUMES, provisioner_controller
from tidegate.sandbox.controllers.workloads.daemon_set import DAEMON_SETS
from tidegate.sandbox.controllers.workloads.deployment import DEPLOYMENTS
from tidegate.sandbox.controllers.workloads.replica_set import REPLICA_SETS
from tidegate.sandbox.controllers.workloads.stateful_set import STATEFUL_SETS
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld

CONTROLLERS = (
    *API_CONTROLLERS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    JOBS,
    JOB_PODS,
    FINISHED_JOBS,
    ORPHAN_PODS,
    CLAIMS,
    CONSUMERS,
    PROTECTED_CLAIMS,
    VOLUMES,
    provisioner_controller(),
    DISRUPTION_BUDGETS,
    *EXTERNAL_STATUS_CONTROLLERS,
    INSTANT_KUBELET,
)
NODE: JsonObject = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "kwok-0"}}


async def simulated(case: Case) -> Trace:
    """What the sandbox's controllers say in a case."""
    dispatcher = Dispatcher(ResilientWorld(Sandbox(controllers=CONTROLLERS)))
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trace"}}
    for body in (NODE, namespace):
        require_live(await ClusterClient(dispatcher).create(body))
    return await trace(case, ClusterClient(dispatcher, namespace="trace"))
