"""The pods that a Job makes."""

from __future__ import annotations

from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.sandbox.controllers.batch.case import JobCase
from tidegate.sandbox.controllers.batch.pods import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    TRACKING,
    JobPod,
)
from tidegate.sandbox.controllers.pods import POD
from tidegate.sandbox.controllers.writes import create, owner_reference
from tidegate.sandbox.server.store import Body
from tidegate.world.calls import Write

LONGEST_PREFIX = 58
"""What a name may have before the five characters that a server adds."""
INDEX_VARIABLE: Json = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}


def make_pod(case: JobCase, index: int | None, replaced: JobPod | None) -> Write:
    """The creation of the next pod, of this index where the Job has indexes."""
    job = case.job
    template = mapping(job.body, "spec", "template")
    labels = mapping(template, "metadata", "labels")
    annotations = mapping(template, "metadata", "annotations")
    spec = mapping(template, "spec")
    prefix = f"{job.ref.name}-"
    if index is not None:
        ending = f"-{index}-"
        prefix = job.ref.name[: LONGEST_PREFIX - len(ending)] + ending
        labels = {**labels, INDEX: str(index)}
        annotations = {**annotations, INDEX: str(index), **_failure_counts(case, replaced)}
        spec = _indexed_spec(spec, f"{job.ref.name}-{index}")
    finalizers = listed(template, "metadata", "finalizers")
    metadata: Body = {
        "generateName": prefix,
        "namespace": job.ref.namespace,
        "labels": labels,
        **({"annotations": annotations} if annotations else {}),
        "finalizers": [*(one for one in finalizers if one != TRACKING), TRACKING],
        "ownerReferences": [owner_reference(job)],
    }
    return create(POD, job.ref.namespace, {"metadata": metadata, "spec": spec})


def _failure_counts(case: JobCase, replaced: JobPod | None) -> dict[str, Json]:
    if case.order.backoff_limit_per_index is None:
        return {}
    if replaced is None:
        return {FAILURES: "0"}
    counts = replaced.verdict.counts
    ignored = replaced.noted(IGNORED_FAILURES) + (not counts)
    noted: dict[str, Json] = {FAILURES: str(replaced.noted(FAILURES) + counts)}
    return noted | ({IGNORED_FAILURES: str(ignored)} if ignored else {})


def _indexed_spec(spec: dict[str, Json], hostname: str) -> dict[str, Json]:
    spec = {**spec, "hostname": hostname}
    for name in ("initContainers", "containers"):
        if name in spec:
            spec[name] = [_with_index(one) for one in mappings(spec, name)]
    return spec


def _with_index(container: dict[str, Json]) -> Json:
    variables = listed(container, "env")
    if any(text(one, "name") == "JOB_COMPLETION_INDEX" for one in variables):
        return container
    return {**container, "env": [*variables, INDEX_VARIABLE]}
