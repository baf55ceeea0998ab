"""Ownership metadata of Helm releases, which Helm writes and checks before it adopts objects.

Like `checkOwnership` in `pkg/action/validate.go` of Helm 4.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.model.k8s.helm_metadata import MANAGED_BY, RELEASE_NAME, RELEASE_NAMESPACE
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.units.release_history import ReleaseSpec

MANAGER = "Helm"


def release_metadata(release_spec: ReleaseSpec) -> tuple[dict[str, str], dict[str, str]]:
    """Return the annotations and labels of an object of a release."""
    return {RELEASE_NAME: release_spec.name, RELEASE_NAMESPACE: release_spec.namespace}, {
        MANAGED_BY: MANAGER
    }


def ownership_problems(body: JsonObject, release_spec: ReleaseSpec) -> list[str]:
    """Return why an object does not belong to this release, like `checkOwnership` of Helm."""
    annotations, labels = release_metadata(release_spec)
    return [
        *_metadata_problems(get_mapping(body, "metadata", "labels"), labels, "label"),
        *_metadata_problems(
            get_mapping(body, "metadata", "annotations"), annotations, "annotation"
        ),
    ]


def foreign_release(body: JsonObject, release_spec: ReleaseSpec | None) -> str:
    """Return the Helm release that an object names, as NAMESPACE/NAME; empty if this one or none.

    The label alone says nothing: charts set it in their templates.
    """
    annotations = get_mapping(body, "metadata", "annotations")
    name = get_text(annotations, RELEASE_NAME)
    if not name or belongs_to_release(body, release_spec):
        return ""
    return f"{get_text(annotations, RELEASE_NAMESPACE)}/{name}"


def belongs_to_release(body: JsonObject, release_spec: ReleaseSpec | None) -> bool:
    """Return whether the metadata of an object names this release."""
    return release_spec is not None and not ownership_problems(body, release_spec)


def _metadata_problems(
    actual: Mapping[str, Json], expected: Mapping[str, str], noun: str
) -> list[str]:
    problems = []
    for key, value in expected.items():
        if key not in actual:
            problems.append(f'missing key "{key}": must be set to "{value}"')
        elif actual[key] != value:
            current = f'current value is "{actual[key]}"'
            problems.append(f'key "{key}" must equal "{value}": {current}')
    return [f"{noun} validation error: {problem}" for problem in problems]
