"""Whatever is done to a Deployment, and whenever: its last spec is reached."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.trace_workloads import WEB, a_template, a_workload, rolling
from tests.support.workload_stage import PLACE, Stage
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import Json
from tidegate.model.times import MINUTE, Ms
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.pods import is_active


@dataclass(frozen=True, slots=True)
class SpecChange:
    """A new spec, and how long it stays."""

    replicas: int
    image: int
    outcome: str
    is_paused: bool
    pause: int


changes = st.lists(
    st.builds(
        SpecChange,
        replicas=st.integers(0, 6),
        image=st.integers(1, 3),
        outcome=st.sampled_from(["", "", "never", "crash"]),
        is_paused=st.booleans(),
        pause=st.integers(0, 3_000),
    ),
    min_size=1,
    max_size=5,
)
strategies = st.sampled_from(
    [
        rolling(surge=1, unavailable=0),
        rolling(surge=0, unavailable=1),
        rolling(surge="25%", unavailable="25%"),
        {"type": "Recreate"},
    ]
)


def alive(view: ObjectReader) -> Json:
    return sum(is_active(pod) for pod in view.list_objects(POD, PLACE))


@settings(max_examples=20, deadline=None)
@given(changes=changes, strategy=strategies)
async def test_a_deployment_reaches_its_last_spec(
    changes: list[SpecChange], strategy: dict[str, Json]
) -> None:
    stage = await Stage(sample=alive).open()
    for change in changes:
        notes = {"outcome": change.outcome} if change.outcome else {}
        template = a_template(image=f"app:{change.image}", **notes)
        body = a_workload(
            WEB,
            replicas=change.replicas,
            template=template,
            paused=change.is_paused,
            strategy=strategy,
        )
        await stage.do(body)
        await stage.run(Ms(change.pause))
    last = changes[-1]

    await stage.do(
        a_workload(
            WEB,
            replicas=last.replicas,
            template=a_template(image=f"app:{last.image}"),
            strategy=strategy,
        )
    )
    await stage.run(MINUTE)
    stage.samples.clear()
    await stage.run(Ms(20 * MINUTE))

    assert stage.images() == [str(last.image)] * last.replicas
    assert stage.count(WEB, "availableReplicas") == last.replicas
    assert stage.condition(WEB, "Progressing") == "True NewReplicaSetAvailable"
    assert stage.samples == []
