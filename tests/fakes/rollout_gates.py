"""For which texts gates opened: what a process had heard by then, by the cluster's own record."""

from __future__ import annotations

from tests.fakes.rollout_plays import Script
from tests.fakes.rollout_record import Record, image_of
from tidegate.engine.fences import is_older
from tidegate.engine.vocabulary import Gone, Judged, Remember
from tidegate.model.objects import Spot
from tidegate.model.reading import number
from tidegate.sandbox.server.store import Stored


def assert_gates_open_for_our_text(
    script: Script, record: Record, *, image: str = "app:1", replicas: int = 1
) -> None:
    """Whatever a gate opened for was last heard of as there, and with our text.

    Only a Job may have gone by then: its time to live may be over when it has ended.
    """
    states = {(one.stored.ref, str(one.stored.version)): one.stored for one in record.changes}
    heard: dict[Spot, Judged | Gone] = {}
    for news, _, decision in script.lines:
        if isinstance(news, Judged | Gone) and not _is_stale(news, heard.get(news.spot)):
            heard[news.spot] = news
        remembered = (one for one in decision.commands if isinstance(one, Remember))
        for spot, _, uid in (opened for one in remembered for opened in one.opened):
            last = heard.get(spot)
            if spot.ref.kind.name == "Job" or last is None:
                continue
            if isinstance(last, Gone):
                assert last.uid != uid, f"{spot.ref} is gone"
            else:
                stored = states[spot.ref, last.version]
                assert is_ours(stored, image, replicas), f"{spot.ref} is somebody else's"


def _is_stale(news: Judged | Gone, known: Judged | Gone | None) -> bool:
    if isinstance(news, Gone) or not isinstance(known, Judged):
        return False
    return known.uid == news.uid and is_older(news.version, known.version)


def is_ours(stored: Stored, image: str, replicas: int) -> bool:
    wanted = (
        stored.ref.kind.name != "Deployment"
        or number(stored.body, "spec", "replicas", default=-1) == replicas
    )
    return image_of(stored) == image and wanted
