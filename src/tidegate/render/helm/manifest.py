"""What `helm template` prints: the texts of all objects, in the order in which Helm installs them.

Programs that run helm themselves, as kustomize does for `helmCharts`, want this and not objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.external.worker import Workers
from tidegate.model.release import Release
from tidegate.render.helm.release import Text
from tidegate.render.helm.rendering import EVENTS, ask, hook_events, pieces_of, read_piece

TEST_EVENTS = frozenset({"test", "test-success"})
INSTALL_ORDER = (
    *("PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange"),
    *("PodSecurityPolicy", "PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList"),
    *("ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim"),
    *("CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding"),
    *("ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service"),
    *("DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment"),
    *("HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "IngressClass", "Ingress"),
    *("APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
)
"""Kinds as Helm installs them; whatever is not named comes behind, by the name of its kind."""

_RANKS = {kind: rank for rank, kind in enumerate(INSTALL_ORDER)}


class Printing(msgspec.Struct, frozen=True):
    """What is printed besides objects: hooks, and of these the tests."""

    hooks: bool = True
    tests: bool = True


class _Piece(msgspec.Struct, frozen=True):
    kind: str
    events: frozenset[str] | None
    text: str

    @property
    def rank(self) -> tuple[int, str]:
        known = _RANKS.get(self.kind)
        return (len(_RANKS), self.kind) if known is None else (known, "")


async def print_manifest(release: Release, workers: Workers, *, printing: Printing) -> str:
    """CRDs, then objects, then hooks, parted by `---`."""
    rendered = await ask(release, workers)
    pieces = sorted(_pieces(rendered.templates), key=lambda piece: piece.rank)
    wanted = EVENTS | TEST_EVENTS if printing.tests else EVENTS
    objects = [piece.text for piece in pieces if piece.events is None]
    hooks = [piece.text for piece in pieces if piece.events is not None and piece.events <= wanted]
    crds = [crd.text for crd in rendered.crds]
    return "".join(
        f"---\n{text}\n" for text in (*crds, *objects, *(hooks if printing.hooks else ()))
    )


def _pieces(templates: Iterable[Text]) -> Iterator[_Piece]:
    for path, number, text in pieces_of(templates):
        documents = [*read_piece(text, path, number)]
        if documents:
            first = documents[0]
            # What stood in a List is sorted as a List.
            kind = "List" if first.inside else str(first.body.get("kind"))
            yield _Piece(kind, None if first.inside else hook_events(first), text)
