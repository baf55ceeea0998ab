"""The same cases in the sandbox, with the controllers that are to be vouched for."""

from __future__ import annotations

from tests.fakes.instant_kubelet import INSTANT_KUBELET
from tests.traces.case import Case
from tests.traces.run import Trace, trace
from tidegate.sandbox.controllers.batch.job import FINISHED_JOBS, JOB_PODS, JOBS, LEFT_PODS
from tidegate.sandbox.controllers.foundations import API_CONTROLLERS
from tidegate.sandbox.controllers.selectors import BUDGETS
from tidegate.sandbox.controllers.stamps import STAMPED
from tidegate.sandbox.controllers.storage.claims import CLAIMS, CONSUMERS, PROTECTED_CLAIMS
from tidegate.sandbox.controllers.storage.volumes import VOLUMES, provisioner
from tidegate.sandbox.controllers.workloads.daemon_set import DAEMON_SETS
from tidegate.sandbox.controllers.workloads.deployment import DEPLOYMENTS
from tidegate.sandbox.controllers.workloads.replica_set import REPLICA_SETS
from tidegate.sandbox.controllers.workloads.stateful_set import STATEFUL_SETS
from tidegate.sandbox.world import Sandbox
from tidegate.testing import Body, Desk, live_of
from tidegate.world.exchange import Exchange
from tidegate.world.line import Line

CONTROLLERS = (
    *API_CONTROLLERS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    JOBS,
    JOB_PODS,
    FINISHED_JOBS,
    LEFT_PODS,
    CLAIMS,
    CONSUMERS,
    PROTECTED_CLAIMS,
    VOLUMES,
    provisioner(),
    BUDGETS,
    *STAMPED,
    INSTANT_KUBELET,
)
NODE: Body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "kwok-0"}}


async def simulated(case: Case) -> Trace:
    """What the sandbox's controllers say in a case."""
    exchange = Exchange(Line(Sandbox(controllers=CONTROLLERS)))
    namespace: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trace"}}
    for body in (NODE, namespace):
        live_of(await Desk(exchange).create(body))
    return await trace(case, Desk(exchange, namespace="trace"))
