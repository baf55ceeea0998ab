"""A release in a namespace of a real cluster, with `tidegate`, helm 3 and helm 4."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

from plane import ControlPlane
from tests.support.helm_oracle import VERSION, VERSION_3, find_helm, run_helm
from tests.support.kubectl import kubectl
from tests.support.releases import ChartRepository, a_shop, helm_release
from tests.support.tidegate_command import CommandResult, Tidegate
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject

VERSIONS = (VERSION_3, VERSION)
FAILS = {"test.tidegate.dev/outcome": "fail"}
Revision = tuple[int, str, str]
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class ReleaseNamespace:
    """A repository with a release, a namespace for it, and a helm client; version 4 by default."""

    plane: ControlPlane
    folder: Path
    shop: ChartRepository
    version: str = VERSION

    @classmethod
    def open(cls, plane: ControlPlane, folder: Path, version: str = VERSION) -> ReleaseNamespace:
        namespace = f"released-{next(_numbers)}"
        kubectl(plane.kubeconfig("admin"), "create", "namespace", namespace)
        return cls(plane, folder, a_shop(folder / "repository", namespace), version)

    @property
    def config(self) -> Path:
        return self.plane.kubeconfig("admin")

    @property
    def namespace(self) -> str:
        return self.shop.namespace

    @property
    def chart(self) -> str:
        return str(self.shop.root / "chart")

    async def tidegate(self, verb: str = "sync", *more: str, fails: bool = False) -> CommandResult:
        words = (self.shop.root, "--kubeconfig", self.config, "--timeout", "100s")
        ran = await Tidegate(self.folder).run(verb, "--yes", *words, *more)
        assert (ran.code != 0) is fails, ran.stdout + ran.stderr
        return ran

    async def operations(self) -> set[str]:
        """The objects of the release in `plan`, without hooks."""
        words = ("plan", self.shop.root, "--kubeconfig", self.config, "-o", "json")
        objects = json.loads((await Tidegate(self.folder).run(*words)).stdout)["objects"]
        return {item["operation"] for item in objects if not item["hook"]}

    def words(self, *words: str, namespace: str = "") -> tuple[str, ...]:
        """For helm, in the namespace of the release or another."""
        return (
            *words,
            "--namespace",
            namespace or self.namespace,
            "--kubeconfig",
            str(self.config),
        )

    def helm(self, *words: str, version: str = "", namespace: str = "") -> str:
        helm, result = find_helm(version or self.version), self.words(*words, namespace=namespace)
        ended = run_helm(helm, *result, user_home=self.folder)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def helm_json(self, *words: str, version: str = "") -> Json:
        document: Json = json.loads(self.helm(*words, "-o", "json", version=version))
        return document

    def history(self, version: str = "") -> list[Revision]:
        """Revision, status and description, the first one first."""
        result = self.helm_json("history", "web", version=version)
        assert isinstance(result, list)
        return [
            (
                int(str(get_value(item, "revision"))),
                get_text(item, "status"),
                get_text(item, "description"),
            )
            for item in result
        ]

    def revision_statuses(self) -> list[tuple[int, str]]:
        """Revision and status, in the eyes of both."""
        three, four = ([item[:2] for item in self.history(version)] for version in VERSIONS)
        assert three == four
        return four

    def listed(self) -> list[tuple[str, str, str, str]]:
        """Name, revision, status and chart of all releases of the namespace."""
        document = json.loads(self.helm("list", "-o", "json"))
        return [
            (item["name"], item["revision"], item["status"], item["chart"]) for item in document
        ]

    def phases(self, version: str = "") -> dict[str, str]:
        """How the hooks of the last revision went, by their names."""
        hooks = get_mappings(self.helm_json("status", "web", version=version), "hooks")
        return {get_text(hook, "name"): get_text(hook, "last_run", "phase") for hook in hooks}

    def kubectl(self, *words: str) -> str:
        return kubectl(self.config, *words, "-n", self.namespace)

    def body(self, kind: str, name: str) -> JsonObject:
        document: JsonObject = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return document

    def apply_release(self) -> None:
        """Create the HelmRelease itself, which no unit of the repository applies."""
        kubectl(self.config, "apply", "-f", "-", text=json.dumps(helm_release(self.namespace)))

    def unit_resource(self) -> JsonObject:
        """The HelmRelease, where it is served."""
        return self.body("helmrelease", "web")

    def setting(self, name: str = "web") -> Json:
        return get_mapping(self.body("configmap", name), "data")

    def names(self) -> set[str]:
        result = self.kubectl("get", "configmap", "-o", "name").split()
        return {item.removeprefix("configmap/") for item in result} - {"kube-root-ca.crt"}

    def records(self) -> list[str]:
        return self.kubectl("get", "secret", "-l", "owner=helm", "-o", "name").split()
