"""For which texts gates opened: what a process had heard by then, by the cluster's own record."""

from __future__ import annotations

from tests.support.cluster_history import Record, image_of
from tests.support.rollout_stages import Script
from tidegate.engine.fences import is_older
from tidegate.engine.messages import HealthChanged, ObjectDeleted, SaveJournal
from tidegate.model.k8s.json_fields import get_int
from tidegate.model.k8s.objects import ClusterRef
from tidegate.sandbox.server.store import StoredObject


def assert_gates_open_for_our_text(
    script: Script, record: Record, *, image: str = "app:1", replicas: int = 1
) -> None:
    """Whatever a gate opened for was last heard of as there, and with our text.

    Only a Job may have gone by then: its time to live may be over when it has ended.
    """
    states = {
        (change.stored.ref, str(change.stored.version)): change.stored for change in record.changes
    }
    latest: dict[ClusterRef, HealthChanged | ObjectDeleted] = {}
    for news, _, decision in script.lines:
        if isinstance(news, HealthChanged | ObjectDeleted) and not _is_stale(
            news, latest.get(news.object_ref)
        ):
            latest[news.object_ref] = news
        remembered = (command for command in decision.commands if isinstance(command, SaveJournal))
        for object_ref, _, uid in (opened for item in remembered for opened in item.opened_gates):
            last = latest.get(object_ref)
            if object_ref.ref.kind.name == "Job" or last is None:
                continue
            if isinstance(last, ObjectDeleted):
                assert last.uid != uid, f"{object_ref.ref} is gone"
            else:
                stored = states[object_ref.ref, last.version]
                assert is_ours(stored, image, replicas), f"{object_ref.ref} is somebody else's"


def _is_stale(
    news: HealthChanged | ObjectDeleted, known: HealthChanged | ObjectDeleted | None
) -> bool:
    if isinstance(news, ObjectDeleted) or not isinstance(known, HealthChanged):
        return False
    return known.uid == news.uid and is_older(news.version, known.version)


def is_ours(stored: StoredObject, image: str, replicas: int) -> bool:
    expected = (
        stored.ref.kind.name != "Deployment"
        or get_int(stored.body, "spec", "replicas", default=-1) == replicas
    )
    return image_of(stored) == image and expected
