"""Pods that are held: they run, and are not ready until somebody has unsealed or set them up.

For whoever plays the kubelet: `held` tells whether, and why, a pod cannot be ready now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from tidegate.knowledge.catalogue import containers_of, serves
from tidegate.model.objects import Kind, Ref
from tidegate.model.operators import Hold
from tidegate.model.reading import listed, mapping, mappings, number, text
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.server.store import Stored

JOB = Kind("batch", "v1", "Job")
CONFIG_MAP = Kind("", "v1", "ConfigMap")


def held(view: Sight, pod: Stored, holds: Iterable[Hold]) -> str:
    """Why a pod cannot be ready; empty where nothing holds it."""
    for hold in holds:
        if serves(hold.pods, pod.body) and not _is_free(view, pod, hold):
            return hold.reason
    return ""


def _is_free(view: Sight, pod: Stored, hold: Hold) -> bool:
    if any(mark in said for said in _texts(view, pod) for mark in hold.unless):
        return True
    return any(
        number(job.body, "status", "succeeded") > 0
        and any(fnmatchcase(job.ref.name, pattern) for pattern in hold.until_jobs)
        for job in view.all_of(JOB, pod.ref.namespace)
    )


def _texts(view: Sight, pod: Stored) -> Iterator[str]:
    """Where a pod's settings stand: its command lines, its variables, its ConfigMaps."""
    for container in containers_of(pod.body):
        words = (*listed(container, "command"), *listed(container, "args"))
        yield " ".join(str(word) for word in words)
        for variable in mappings(container, "env"):
            yield f"{variable.get('name')}={variable.get('value')}"
    for volume in mappings(pod.body, "spec", "volumes"):
        name = text(volume, "configMap", "name")
        found = view.get(Ref(CONFIG_MAP, pod.ref.namespace, name)) if name else None
        if found is not None:
            yield from (str(value) for value in mapping(found.body, "data").values())
