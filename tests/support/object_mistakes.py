"""Ordinary mistakes in objects of built-in kinds: what people write, and a server refuses.

None is a wrong type or a misspelt field: those every server refuses before it looks further.
"""

from __future__ import annotations

import base64

from tests.support.builders import make_object
from tidegate.model.k8s.objects import Json, JsonObject

LABELS: JsonObject = {"app": "a"}
SELECTOR: JsonObject = {"matchLabels": LABELS}
CONTAINER: JsonObject = {"name": "a", "image": "a"}
TARGET: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
RBAC = "rbac.authorization.k8s.io/v1"
CLAIM: JsonObject = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}


def pod(*containers: JsonObject, **spec: Json) -> JsonObject:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [*containers], **spec}}


def deployment(*containers: JsonObject, **spec: Json) -> JsonObject:
    template = pod(*(containers or (CONTAINER,)), **spec)
    return {"kind": "apps/v1 Deployment", "spec": {"selector": SELECTOR, "template": template}}


def container(**parts: Json) -> JsonObject:
    return deployment({**CONTAINER, **parts})


def job(**spec: Json) -> JsonObject:
    return {
        "kind": "batch/v1 Job",
        "spec": {"template": pod(CONTAINER, restartPolicy="Never"), **spec},
    }


def cron_job(**spec: Json) -> JsonObject:
    made: JsonObject = {"spec": {"template": pod(CONTAINER, restartPolicy="Never")}}
    return {
        "kind": "batch/v1 CronJob",
        "spec": {"schedule": "* * * * *", "jobTemplate": made, **spec},
    }


def stateful_set(**spec: Json) -> JsonObject:
    whole: JsonObject = {"selector": SELECTOR, "serviceName": "a", "template": pod(CONTAINER)}
    return {"kind": "apps/v1 StatefulSet", "spec": {**whole, **spec}}


def service(**spec: Json) -> JsonObject:
    return {"kind": "v1 Service", "spec": {"ports": [{"port": 80}], **spec}}


def autoscaler(**spec: Json) -> JsonObject:
    whole: JsonObject = {"scaleTargetRef": TARGET, "maxReplicas": 3}
    return {"kind": "autoscaling/v2 HorizontalPodAutoscaler", "spec": {**whole, **spec}}


def budget(**spec: Json) -> JsonObject:
    return {"kind": "policy/v1 PodDisruptionBudget", "spec": {"selector": SELECTOR, **spec}}


def policy(**spec: Json) -> JsonObject:
    return {"kind": "networking.k8s.io/v1 NetworkPolicy", "spec": {"podSelector": {}, **spec}}


def ingress(**spec: Json) -> JsonObject:
    return {"kind": "networking.k8s.io/v1 Ingress", "spec": {**spec}}


def role(*rules: JsonObject) -> JsonObject:
    return {"kind": f"{RBAC} Role", "rules": [*rules]}


def secret(type_: str, **data: str) -> JsonObject:
    held: JsonObject = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"kind": "v1 Secret", "type": type_, "data": held}


def from_cidr(cidr: str, *but: str) -> JsonObject:
    block: JsonObject = {"cidr": cidr, "except": [*but]}
    return policy(ingress=[{"from": [{"ipBlock": block}]}])


def to_service(**path: Json) -> JsonObject:
    backend: JsonObject = {"service": {"name": "a", "port": {"number": 80}}}
    whole: JsonObject = {"path": "/", "pathType": "Prefix", "backend": backend, **path}
    return ingress(rules=[{"host": "a.example.org", "http": {"paths": [whole]}}])


def with_volume(**source: Json) -> JsonObject:
    return deployment(volumes=[{"name": "v", **source}])


HTTP: JsonObject = {"httpGet": {"path": "/", "port": 80}}
SPREAD: JsonObject = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}
METRIC: JsonObject = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}}

MISTAKES: dict[str, JsonObject] = {
    "limits below requests": container(
        resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}
    ),
    "memory limits below requests": container(
        resources={"limits": {"memory": "1Mi"}, "requests": {"memory": "1Gi"}}
    ),
    "a limit below nothing": container(resources={"limits": {"memory": "-1Gi"}}),
    "a resource nobody knows": container(resources={"limits": {"gpu": "1"}}),
    "half of a huge page": container(resources={"limits": {"hugepages-2Mi": "3Mi"}}),
    "two volume sources": with_volume(emptyDir={}, configMap={"name": "a"}),
    "no volume source but a name": with_volume(hostPath={"path": "/a/../b"}),
    "a mode beyond all": with_volume(secret={"secretName": "a", "defaultMode": 4096}),
    "an item that climbs": with_volume(
        configMap={"name": "a", "items": [{"key": "a", "path": "../a"}]}
    ),
    "a mount without a volume": container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
    "two mounts at a place": deployment(
        {
            **CONTAINER,
            "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/v"}],
        },
        volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
    ),
    "a sub path that climbs": deployment(
        {**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "../a"}]},
        volumes=[{"name": "v", "emptyDir": {}}],
    ),
    "a port without a number": container(ports=[{"name": "http"}]),
    "a port name that is too long": container(
        ports=[{"containerPort": 80, "name": "a-name-that-is-too-long"}]
    ),
    "a port name without a letter": container(ports=[{"containerPort": 80, "name": "80"}]),
    "two ports of a name": container(
        ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]
    ),
    "a host port beyond all": container(ports=[{"containerPort": 80, "hostPort": 70000}]),
    "a variable with an equals sign": container(env=[{"name": "A=B", "value": "a"}]),
    "a value and where it is from": container(
        env=[{"name": "A", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    ),
    "a field that pods do not have": container(
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.node"}}}]
    ),
    "a probe of two kinds": container(livenessProbe={**HTTP, "tcpSocket": {"port": 80}}),
    "a probe of none": container(readinessProbe={"periodSeconds": 5}),
    "a liveness probe that must succeed twice": container(
        livenessProbe={**HTTP, "successThreshold": 2}
    ),
    "a probe before its time": container(readinessProbe={**HTTP, "initialDelaySeconds": -1}),
    "a probe of a port by a bad name": container(
        livenessProbe={"httpGet": {"path": "/", "port": "not_a_port"}}
    ),
    "a pull policy that is none": container(imagePullPolicy="Sometimes"),
    "privileged without escalation": container(
        securityContext={"privileged": True, "allowPrivilegeEscalation": False}
    ),
    "a user below nobody": container(securityContext={"runAsUser": -1}),
    "a proc mount that is none": container(securityContext={"procMount": "Some"}),
    "a life cycle without a deed": container(lifecycle={"preStop": {}}),
    "two containers of a name": deployment(CONTAINER, CONTAINER),
    "no restarts of a deployment": deployment(restartPolicy="Never"),
    "a DNS policy without servers": deployment(dnsPolicy="None"),
    "a host name with dots": deployment(hostname="a.b"),
    "a toleration that tolerates too much": deployment(
        tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]
    ),
    "a toleration with seconds for no reason": deployment(
        tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]
    ),
    "a spread without a skew": deployment(
        topologySpreadConstraints=[{**SPREAD, "maxSkew": 0, "labelSelector": SELECTOR}]
    ),
    "an affinity without a topology": deployment(
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": SELECTOR, "topologyKey": ""}
                ]
            }
        }
    ),
    "a weight beyond all": deployment(
        affinity={
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 101,
                        "podAffinityTerm": {"labelSelector": SELECTOR, "topologyKey": "a"},
                    }
                ]
            }
        }
    ),
    "an account that cannot be called so": deployment(serviceAccountName="Not_An_Account"),
    "neither surge nor absence": {
        "kind": "apps/v1 Deployment",
        "spec": {
            "selector": SELECTOR,
            "template": pod(CONTAINER),
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
        },
    },
    "a deadline shorter than being ready": {
        "kind": "apps/v1 Deployment",
        "spec": {
            "selector": SELECTOR,
            "template": pod(CONTAINER),
            "minReadySeconds": 700,
        },
    },
    "a template that nobody selects": {
        "kind": "apps/v1 Deployment",
        "spec": {"selector": {"matchLabels": {"app": "b"}}, "template": pod(CONTAINER)},
    },
    "an update strategy that is none": stateful_set(updateStrategy={"type": "Recreate"}),
    "a pod management that is none": stateful_set(podManagementPolicy="Together"),
    "a claim without a size": stateful_set(
        volumeClaimTemplates=[
            {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        ]
    ),
    "a completion mode that is none": job(completionMode="Some"),
    "a job that restarts always": job(template=pod(CONTAINER, restartPolicy="Always")),
    "a schedule of an hour too many": cron_job(schedule="0 25 * * *"),
    "a time zone that is none": cron_job(timeZone="Mars/Olympus"),
    "a history below nothing": cron_job(successfulJobsHistoryLimit=-1),
    "a name too long for a job of the hour": cron_job(),
    "a service without ports": service(ports=[]),
    "a port without a name among two": service(ports=[{"port": 80}, {"port": 81}]),
    "a cluster address that is none": service(clusterIP="10.0.0.999"),
    "a target port by a bad name": service(ports=[{"port": 80, "targetPort": "not_a_port"}]),
    "an external name with a scheme": service(
        type="ExternalName", externalName="https://a.example.org", ports=[]
    ),
    "a session that lasts below nothing": service(
        sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": -1}}
    ),
    "load balanced from nowhere": service(
        type="LoadBalancer", loadBalancerSourceRanges=["10.0.0.0"]
    ),
    "a traffic policy without nodes": service(externalTrafficPolicy="Local"),
    "both fields of a budget": budget(minAvailable=1, maxUnavailable=1),
    "more than all available": budget(minAvailable="120%"),
    "fewer than none available": budget(maxUnavailable=-1),
    "the least above the most": autoscaler(minReplicas=5),
    "no most": autoscaler(maxReplicas=0),
    "a metric that asks for nothing": autoscaler(
        metrics=[{"type": "Resource", "resource": METRIC}]
    ),
    "no verbs": role({"apiGroups": [""], "resources": ["pods"]}),
    "no resources": role({"apiGroups": [""], "verbs": ["get"]}),
    "addresses in a namespace": role({"nonResourceURLs": ["/a"], "verbs": ["get"]}),
    "a binding to a group of nobody's": {
        "kind": f"{RBAC} RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
        "subjects": [{"kind": "User", "name": "a", "apiGroup": "example.org"}],
    },
    "CIDR /99": from_cidr("10.0.0.0/99"),
    "an exception outside": from_cidr("10.0.0.0/24", "10.1.0.0/24"),
    "a policy port beyond all": policy(egress=[{"ports": [{"port": 70000}]}]),
    "a policy that ends before it begins": policy(egress=[{"ports": [{"port": 80, "endPort": 1}]}]),
    "a policy type that is none": policy(policyTypes=["Both"]),
    "an ingress to nowhere": ingress(),
    "a path that does not begin": to_service(path="a"),
    "a path type that is none": to_service(pathType="Regex"),
    "an ingress for an address": ingress(
        defaultBackend={"service": {"name": "a", "port": {"number": 80}}},
        rules=[{"host": "10.0.0.1"}],
    ),
    "TLS for a bad name": ingress(
        defaultBackend={"service": {"name": "a", "port": {"number": 80}}},
        tls=[{"hosts": ["A_b"]}],
    ),
    "a ConfigMap over 1 MiB": {"kind": "v1 ConfigMap", "data": {"a": "x" * (1024 * 1024 + 1)}},
    "a key with a space": {"kind": "v1 ConfigMap", "data": {"a b": "c"}},
    "a key of two dots": {"kind": "v1 ConfigMap", "data": {"..": "c"}},
    "a key twice": {"kind": "v1 ConfigMap", "data": {"a": "b"}, "binaryData": {"a": "AAAA"}},
    "a broken dockerconfigjson": secret(
        "kubernetes.io/dockerconfigjson", **{".dockerconfigjson": "{"}
    ),
    "a certificate without a key": secret("kubernetes.io/tls", **{"tls.crt": "a"}),
    "a login of nobody": secret("kubernetes.io/basic-auth"),
    "a claim of nothing": {
        "kind": "v1 PersistentVolumeClaim",
        "spec": {**CLAIM, "resources": {"requests": {"storage": "0"}}},
    },
    "a claim of no mode": {
        "kind": "v1 PersistentVolumeClaim",
        "spec": {**CLAIM, "accessModes": []},
    },
    "a claim with a limit below": {
        "kind": "v1 PersistentVolumeClaim",
        "spec": {**CLAIM, "volumeMode": "Some"},
    },
    "a quota of half a pod": {"kind": "v1 ResourceQuota", "spec": {"hard": {"pods": "500m"}}},
    "a quota below nothing": {"kind": "v1 ResourceQuota", "spec": {"hard": {"pods": "-1"}}},
    "a range that ends before it begins": {
        "kind": "v1 LimitRange",
        "spec": {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]},
    },
    "a label that is too long": {"kind": "v1 ServiceAccount", "labels": {"a": "x" * 64}},
    "annotations over 256 KiB": {"kind": "v1 ServiceAccount", "annotations": {"a": "x" * 262_144}},
}
LONG = "a-name-too-long-for-a-job-of-the-hour-as-it-has-more-than-52-letters"


def named_mistakes(namespace: str) -> dict[str, JsonObject]:
    """The objects, by names of theirs."""
    return dict(_named(number, mistake, namespace) for number, mistake in enumerate(MISTAKES))


def _named(number: int, mistake: str, namespace: str) -> tuple[str, JsonObject]:
    name = LONG if mistake.startswith("a name too long") else f"mistake-{number}"
    parts = {**MISTAKES[mistake]}
    kind, heads = str(parts.pop("kind")), ("labels", "annotations")
    head: JsonObject = {field: parts.pop(field) for field in heads if field in parts}
    body = make_object(kind, name, namespace=namespace, **parts)
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return name, {**body, "metadata": {**metadata, **head}}
