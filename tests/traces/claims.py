"""Claims that cases wait for."""

from __future__ import annotations

from tests.traces.case import Claim
from tidegate.model.reading import mapping, mappings, number, text
from tidegate.testing import Body


def is_observed(body: Body) -> bool:
    return number(body, "status", "observedGeneration") >= number(body, "metadata", "generation")


def says(condition: str, reason: str, *, observed: bool = True) -> Claim:
    """A condition with this reason, said of the newest generation."""

    def holds(body: Body) -> bool:
        found = [one for one in mappings(body, "status", "conditions") if one["type"] == condition]
        given = bool(found) and text(found[0], "reason") == reason
        return given and (is_observed(body) or not observed)

    return holds


def counts(**wanted: int) -> Claim:
    """These counts, said of the newest generation; one that is left out is 0."""

    def holds(body: Body) -> bool:
        status = mapping(body, "status")
        given = all(number(status, name) == count for name, count in wanted.items())
        return given and is_observed(body)

    return holds


def rolled_out(body: Body) -> bool:
    """A Deployment that is all new and all available."""
    wanted = number(body, "spec", "replicas", default=1)
    names = ("replicas", "updatedReplicas", "availableReplicas")
    return counts(**dict.fromkeys(names, wanted))(body) and (
        says("Progressing", "NewReplicaSetAvailable")(body)
    )


def updated(body: Body) -> bool:
    """A StatefulSet whose pods are all ready and all of its newest revision."""
    wanted = number(body, "spec", "replicas", default=1)
    status = mapping(body, "status")
    is_one = text(status, "currentRevision") == text(status, "updateRevision")
    return is_one and counts(readyReplicas=wanted, updatedReplicas=wanted)(body)
