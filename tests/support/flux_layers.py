"""Three typical layers for Flux, and the Kustomization of the cluster that deploys them.

Ground (definitions, accounts, permissions), data with an encrypted Secret whose key is in the
cluster, and the web; each after the previous one, with `wait` or `healthChecks`.
"""

from __future__ import annotations

from tests.support.repositories import (
    Repository,
    deployment,
    git_repository,
    kustomization,
    named,
    namespace,
    setting,
)
from tests.support.sops_program import AgeKey, encrypt
from tidegate.model.k8s.objects import Json, JsonObject

CANARY = "kea-winters-in-the-alps"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: password\nstringData:\n  word: {word}\n"
DECRYPTION: Json = {"provider": "sops", "secretRef": {"name": "sops-age"}}
CHECK: Json = {"kind": "Deployment", "name": "db", "namespace": "shop"}
RBAC = "rbac.authorization.k8s.io/v1"
ORDER = ("namespaces/shop", "secrets/password", "deployments/db", "configmaps/web")


def sops_age(namespace: str, key: AgeKey) -> JsonObject:
    """Build the Secret with the key, which a person creates by hand."""
    metadata: Json = {"name": "sops-age", "namespace": namespace}
    data: Json = {"age.agekey": key.identity}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}


def three_layers(made: Repository, key: AgeKey) -> None:
    main = "clusters/main"
    root = kustomization("flux-system", f"./{main}", into="", wait=False)
    made.put(f"{main}/flux-system/sync.yaml", git_repository(), root)
    made.put(f"{main}/ground.yaml", kustomization("ground", "./ground", into=""))
    data = kustomization(
        "data",
        "./data",
        after=("ground",),
        wait=False,
        healthChecks=[CHECK],
        decryption=DECRYPTION,
    )
    made.put(f"{main}/data.yaml", data)
    made.put(f"{main}/web.yaml", kustomization("web", "./web", after=("data",)))
    made.put("ground/all.yaml", namespace("shop"), *_ground(made.suffix))
    made.put("data/db.yaml", deployment("db"), *_data())
    made.put("web/all.yaml", setting("web"), *_web())
    made.put("web/old.yaml", setting("old"))
    encrypt_secret(made, key)


def encrypt_secret(made: Repository, key: AgeKey, word: str = CANARY) -> None:
    """Write the Secret of the data, encrypted."""
    file = made.root / "data/password.yaml"
    sealed = encrypt(file, SECRET.format(word=word), key, "--encrypted-regex", "^stringData$")
    file.write_bytes(sealed)


def _ground(suffix: str) -> list[JsonObject]:
    """What is no part of a namespace has names of its own on each cluster that is shared."""
    group = f"harbour{suffix}.example.org"
    shape: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names: Json = {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"}
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": shape},
    }
    rules: Json = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"boats.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": names,
                "versions": [version],
            },
        },
        {
            "apiVersion": RBAC,
            "kind": "ClusterRole",
            "metadata": {"name": f"example:pods{suffix}"},
            "rules": rules,
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": f"example-calm{suffix}"},
            "value": 7,
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named("keeper", "shop")},
        {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": named("keepers", "shop"),
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": f"example:pods{suffix}",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "keeper", "namespace": "shop"}],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "Boat",
            "metadata": named("ferry", "shop"),
            "spec": {"seats": 8, "name": "on"},
        },
    ]


def _data() -> list[JsonObject]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": named("db"),
            "spec": {"selector": {"app": "db"}, "ports": [{"port": 5432}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": named("plain"),
            "stringData": {"port": "5432"},
        },
    ]


def _web() -> list[JsonObject]:
    container: Json = {
        "name": "main",
        "image": "main:1",
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "EMPTY", "value": ""}, {"name": "PORT", "value": "8080"}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
    }
    labels: Json = {"app": "front"}
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": named("front"),
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": named("sweep"),
            "spec": {
                "schedule": "0 4 * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{"name": "main", "image": "busybox"}],
                            }
                        }
                    }
                },
            },
        },
    ]
