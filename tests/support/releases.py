"""A repository with a HelmRelease and its chart, and the records that there are of it.

shop = ChartRepository(tmp_path)
shop.put("templates/web.yaml", CONFIG)
sandbox.sync(shop.root)
assert [one.status for one in records(sandbox)] == ["deployed"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.support.persistent_sandbox import PersistentSandbox, definition
from tests.support.repositories import Repository, git_repository, namespace
from tidegate.dialect.helm.record import ReleaseRecord, read_record
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind

RELEASE = Kind("helm.toolkit.fluxcd.io", "v2", "HelmRelease")
SECRET = Kind("", "v1", "Secret")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
SOURCE: JsonObject = {"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"}
OWNER = "helm.sh/release.v1"
ONLY_WHERE_ABSENT = """\
{{- if not (lookup "v1" "Secret" .Release.Namespace "once") }}
apiVersion: v1
kind: Secret
metadata:
  name: once
data:
  word: {{ randAlphaNum 16 | b64enc }}
{{- end }}
"""
"""A Secret that a chart makes where it finds none."""


def helm_release(namespace: str, **spec: Json) -> JsonObject:
    chart: Json = {"spec": {"chart": "./chart", "sourceRef": {**SOURCE}}}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"interval": "10m", "chart": chart, **spec},
    }


def config_map(name: str, **data: str) -> str:
    """A template; values may be expressions."""
    lines = "".join(f"  {key}: {item}\n" for key, item in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{lines}"


def hook(
    name: str,
    events: str,
    *,
    weight: int = 0,
    policy: str = "",
    kind: str = "Job",
    pod: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A template of a hook that ends well at once, unless annotations of its pod say otherwise."""
    notes: dict[str, Json] = {"helm.sh/hook": events, "helm.sh/hook-weight": str(weight)}
    if policy:
        notes["helm.sh/hook-delete-policy"] = policy
    metadata: Json = {"name": name, "annotations": notes}
    if kind != "Job":
        return to_yaml({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    container: Json = {"name": "main", "image": "busybox"}
    template: Json = {
        "metadata": {"annotations": {**pod}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec: Json = {"backoffLimit": 0, "template": template}
    return to_yaml({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


@dataclass(slots=True)
class ChartRepository:
    """One HelmRelease, `web`, of one chart."""

    root: Path
    namespace: str = "shop"
    spec: JsonObject = field(default_factory=dict)
    version: str = "1.0.0"
    chart: str = "shop"
    file: str = "clusters/main/all.yaml"

    def __post_init__(self) -> None:
        self.release()

    def release(self, **spec: Json) -> None:
        """Write the release, with more than was said before."""
        self.spec = {**self.spec, **spec}
        bodies = (
            git_repository(),
            namespace(self.namespace),
            helm_release(self.namespace, **self.spec),
        )
        Repository(self.root).put(self.file, *bodies)
        self.put("Chart.yaml", f"apiVersion: v2\nname: {self.chart}\nversion: {self.version}\n")

    def put(self, path: str, content: str) -> None:
        file = self.root / "chart" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def drop(self, path: str) -> None:
        (self.root / "chart" / path).unlink()


def a_shop(root: Path, namespace: str = "shop") -> ChartRepository:
    """Its chart has one ConfigMap, `web`, with the value `to`."""
    made = ChartRepository(root, namespace)
    made.put("values.yaml", "to: one\n")
    made.put("templates/web.yaml", config_map("web", to="'{{ .Values.to }}'"))
    return made


def release_sandbox(
    folder: Path,
    patch: pytest.MonkeyPatch,
    *,
    with_unit_resource: bool = False,
    failing: Sequence[str] = (),
    behaviours: Sequence[Json] = (),
) -> PersistentSandbox:
    """A cluster with a place for the release; with its `own` object, which says how it is."""
    user_home, place = folder / "home", namespace("shop")
    user_home.mkdir()
    given = (
        (definition(RELEASE, "helmreleases", status=True), place)
        if with_unit_resource
        else (place,)
    )
    cluster = PersistentSandbox.make(
        user_home, patch, *given, served=False, failing=failing, behaviours=behaviours
    )
    if with_unit_resource:
        cluster.put(helm_release("shop"))
    return cluster


def records(sandbox: PersistentSandbox, namespace: str = "shop") -> list[ReleaseRecord]:
    """The revisions of all releases of a namespace, the first one first."""
    secrets = sandbox.all(SECRET, namespace).values()
    matches = [read_record(secret) for secret in secrets if get_text(secret, "type") == OWNER]
    return sorted(matches, key=lambda item: (item.name, item.number))


def revision_statuses(sandbox: PersistentSandbox, namespace: str = "shop") -> list[tuple[int, str]]:
    return [(record.number, record.status.value) for record in records(sandbox, namespace)]
