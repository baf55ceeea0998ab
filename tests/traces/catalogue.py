"""Every case."""

from __future__ import annotations

from tests.traces.budgets import BUDGETS
from tests.traces.daemon_sets import DAEMON_SETS
from tests.traces.deployments import DEPLOYMENTS
from tests.traces.jobs import JOBS
from tests.traces.replica_sets import REPLICA_SETS
from tests.traces.stateful_sets import STATEFUL_SETS
from tests.traces.volumes import VOLUMES

CASES = (*DEPLOYMENTS, *REPLICA_SETS, *STATEFUL_SETS, *DAEMON_SETS, *JOBS, *BUDGETS, *VOLUMES)
