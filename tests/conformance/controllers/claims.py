"""Claims that cases wait for."""

from __future__ import annotations

from tests.support.trace_case import Claim
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject


def is_observed(body: JsonObject) -> bool:
    return get_int(body, "status", "observedGeneration") >= get_int(body, "metadata", "generation")


def says(condition: str, reason: str, *, observed: bool = True) -> Claim:
    """A condition with this reason, said of the newest generation."""

    def holds(body: JsonObject) -> bool:
        matches = [
            item for item in get_mappings(body, "status", "conditions") if item["type"] == condition
        ]
        given = bool(matches) and get_text(matches[0], "reason") == reason
        return given and (is_observed(body) or not observed)

    return holds


def counts(**counts_by_field: int) -> Claim:
    """These counts, said of the newest generation; one that is left out is 0."""

    def holds(body: JsonObject) -> bool:
        status = get_mapping(body, "status")
        given = all(get_int(status, name) == count for name, count in counts_by_field.items())
        return given and is_observed(body)

    return holds


def rolled_out(body: JsonObject) -> bool:
    """A Deployment that is all new and all available."""
    expected = get_int(body, "spec", "replicas", default=1)
    names = ("replicas", "updatedReplicas", "availableReplicas")
    return counts(**dict.fromkeys(names, expected))(body) and (
        says("Progressing", "NewReplicaSetAvailable")(body)
    )


def updated(body: JsonObject) -> bool:
    """A StatefulSet whose pods are all ready and all of its newest revision."""
    expected = get_int(body, "spec", "replicas", default=1)
    status = get_mapping(body, "status")
    has_one_revision = get_text(status, "currentRevision") == get_text(status, "updateRevision")
    return has_one_revision and counts(readyReplicas=expected, updatedReplicas=expected)(body)
