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
    """Whatever a gate opened for, and is there, was last heard of with our text."""
    states = {(one.stored.ref, str(one.stored.version)): one.stored for one in record.changes}
    heard: dict[Spot, Judged] = {}
    for news, _, decision in script.lines:
        if isinstance(news, Gone):
            heard.pop(news.spot, None)
        if isinstance(news, Judged):
            known = heard.get(news.spot)
            if known is None or known.uid != news.uid or not is_older(news.version, known.version):
                heard[news.spot] = news
        for command in decision.commands:
            opened = command.opened if isinstance(command, Remember) else ()
            for spot, *_ in opened:
                if spot in heard and spot.ref.kind.name != "Job":
                    stored = states[spot.ref, heard[spot].version]
                    assert is_ours(stored, image, replicas), f"{spot.ref} is somebody else's"


def is_ours(stored: Stored, image: str, replicas: int) -> bool:
    wanted = (
        stored.ref.kind.name != "Deployment"
        or number(stored.body, "spec", "replicas", default=-1) == replicas
    )
    return image_of(stored) == image and wanted
