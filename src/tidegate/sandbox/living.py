"""A cluster that lives: its controllers, its kubelet, its operators."""

from __future__ import annotations

from tidegate.model.operators import Knowledge
from tidegate.sandbox.controllers.batch.cron_job import CRON_JOBS
from tidegate.sandbox.controllers.batch.job import JOB_CONTROLLERS
from tidegate.sandbox.controllers.foundations import API_CONTROLLERS
from tidegate.sandbox.controllers.reaction import Controller, Visible
from tidegate.sandbox.controllers.selectors import SELECTING
from tidegate.sandbox.controllers.stamps import STAMPED
from tidegate.sandbox.controllers.storage.volumes import STORAGE_CONTROLLERS, provisioner
from tidegate.sandbox.controllers.workloads.daemon_set import DAEMON_SETS
from tidegate.sandbox.controllers.workloads.deployment import DEPLOYMENTS
from tidegate.sandbox.controllers.workloads.replica_set import REPLICA_SETS
from tidegate.sandbox.controllers.workloads.stateful_set import STATEFUL_SETS
from tidegate.sandbox.operators.authority import authorities
from tidegate.sandbox.operators.interpreter import operators, paced
from tidegate.sandbox.operators.presence import held
from tidegate.sandbox.physics.kubelet.pod import kubelet
from tidegate.sandbox.physics.profile import Profile
from tidegate.sandbox.server.store import Stored

CONTROLLERS = (
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    *JOB_CONTROLLERS,
    CRON_JOBS,
    *STORAGE_CONTROLLERS,
    *SELECTING,
    *STAMPED,
)


def living(profile: Profile, known: Knowledge, *, factor: float = 1) -> tuple[Controller, ...]:
    """Every controller, with durations from a profile and operators from what is known.

    `factor`: how much longer operators take than their rows say.
    """
    own = inhabitants(profile, known, factor=factor)
    return (*API_CONTROLLERS, *CONTROLLERS, provisioner(), *own)


def inhabitants(
    profile: Profile, known: Knowledge, *, factor: float = 1, announces: bool = False
) -> tuple[Controller, ...]:
    """Those that a control plane does not bring: a kubelet and operators.

    A kubelet that `announces` tells in Events what it has pulled.
    """
    holds = known.holds[::-1]

    def is_held(view: Visible, pod: Stored) -> str:
        return held(view, pod, holds)

    rows = paced(known.rows, profile.stages, factor)
    own = kubelet(profile, held=is_held, announces=announces)
    return (own, operators(rows), authorities(rows))
