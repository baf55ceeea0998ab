"""Every case."""

from __future__ import annotations

from tests.conformance.controllers.budgets import BUDGETS
from tests.conformance.controllers.daemon_sets import DAEMON_SETS
from tests.conformance.controllers.deployments import DEPLOYMENTS
from tests.conformance.controllers.jobs import JOBS
from tests.conformance.controllers.replica_sets import REPLICA_SETS
from tests.conformance.controllers.stateful_sets import STATEFUL_SETS
from tests.conformance.controllers.volumes import VOLUMES

CASES = (*DEPLOYMENTS, *REPLICA_SETS, *STATEFUL_SETS, *DAEMON_SETS, *JOBS, *BUDGETS, *VOLUMES)
