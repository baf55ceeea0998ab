"""Cases of DaemonSets, on the one node that the test plane has."""

from __future__ import annotations

from tests.conformance.controllers.claims import counts
from tests.support.trace_case import Action, Case, Pause, Until
from tests.support.trace_workloads import AGENT, a_template, a_workload
from tidegate.model.times import SECOND, Ms

READY = Until(
    AGENT,
    counts(desiredNumberScheduled=1, numberReady=1, updatedNumberScheduled=1, numberAvailable=1),
)


def _case(name: str, *actions: Action) -> Case:
    return Case(f"daemon-set-{name}", (AGENT,), actions)


DAEMON_SETS = (
    _case("runs-on-every-node", a_workload(AGENT), READY),
    _case(
        "rolls-to-a-new-image",
        a_workload(AGENT),
        READY,
        a_workload(AGENT, template=a_template(image="app:2")),
        READY,
    ),
    _case(
        "rolls-with-surge",
        a_workload(AGENT, updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
        READY,
        a_workload(
            AGENT,
            updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            template=a_template(image="app:2"),
        ),
        READY,
    ),
    _case(
        "never-ready",
        a_workload(AGENT, template=a_template(outcome="never")),
        Until(AGENT, counts(currentNumberScheduled=1)),
        Pause(Ms(SECOND)),
    ),
)
