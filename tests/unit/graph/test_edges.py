"""What objects depend on, and what produces it."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.unit.graph.repository import edges_of, graph_of, graph_of_text, manifests_of, unit_of
from tidegate.graph.missing import find_unmet_dependencies
from tidegate.model.operators.rows import Effect, RequiredState
from tidegate.model.plans.graph import EdgeKind, NodeKind
from tidegate.model.units.semantics import ARGOCD
from tidegate.model.units.unit import Strength

POD = """\
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: acme/web
"""
WEB = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
{POD}"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""


def together(*texts: str) -> str:
    return "---\n".join(texts)


def missing_names(text: str) -> list[str]:
    return [
        unmet_dependency.name
        for unmet_dependency in find_unmet_dependencies(graph_of_text(together(NAMESPACE, text)))
    ]


def test_a_namespace_of_the_repository_is_needed_and_every_clusters_own_is_not() -> None:
    graph = graph_of_text(together(NAMESPACE, WEB))
    everywhere = WEB.replace("{name: web}", "{name: web, namespace: kube-system}", 1)

    edge = edges_of(graph, "Deployment shop/web")["Namespace shop"]
    assert (edge.kind, edge.effect) == (EdgeKind.NAMESPACE, Effect.REJECTED)
    assert graph.nodes[edge.before].kind is NodeKind.OBJECT
    assert edges_of(graph_of_text(everywhere), "Deployment kube-system/web") == {}


def test_two_rows_for_one_field_make_one_reference() -> None:
    store = (
        "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: vault}\n"
        "spec:\n  provider:\n    onepassword:\n      auth:\n        secretRef:\n"
        "          connectTokenSecretRef: {name: token, namespace: shop, key: token}\n"
    )

    (missing,) = [
        unmet_dependency
        for unmet_dependency in find_unmet_dependencies(graph_of_text(store))
        if unmet_dependency.name == "Secret shop/token"
    ]

    assert len(missing.dependents) == 1


def test_a_key_that_a_secret_has_not_got_is_missing(wording: RecordedWording) -> None:
    env = "        env:\n        - {name: A, valueFrom: {secretKeyRef: {name: db, key: user}}}\n"
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: x}\n"

    wording(missing_names(together(WEB + env, secret)))
    assert missing_names(together(WEB + env, secret.replace("password", "user"))) == []


def test_an_optional_object_is_not_missing() -> None:
    env = "        envFrom:\n        - secretRef: {name: db, optional: true}\n"
    graph = graph_of_text(together(NAMESPACE, WEB + env))

    assert find_unmet_dependencies(graph) == ()
    assert edges_of(graph, "Deployment shop/web")["Secret shop/db"].is_optional


@pytest.mark.parametrize(
    ("container", "effect"),
    [
        ("command: [psql, -h, db]", Effect.FAILS),
        ("command: [sh, -c, 'until nc -z db 5432; do sleep 1; done']", Effect.BLOCKED),
    ],
)
def test_a_task_fails_without_the_service_that_it_calls_unless_it_waits(
    container: str, effect: Effect
) -> None:
    job = WEB.replace("apps/v1", "batch/v1").replace("Deployment", "Job") + f"        {container}\n"
    service = SERVICE.replace("name: web", "name: db").replace("app: web", "app: db")

    edge = edges_of(graph_of_text(together(job, service)), "Job shop/web")["Service shop/db"]
    assert (edge.kind, edge.effect, edge.required_state) == (
        EdgeKind.HOST,
        effect,
        RequiredState.SERVING,
    )


def test_a_server_starts_without_what_it_calls_and_its_init_container_does_not() -> None:
    call = "        env: [{name: DB_HOST, value: db.data.svc}]\n"
    init = WEB.replace("      containers:", "      initContainers:")

    served = edges_of(graph_of_text(WEB + call), "Deployment shop/web")["Service data/db"]
    begun = edges_of(graph_of_text(init + call), "Deployment shop/web")["Service data/db"]
    assert (served.effect, begun.effect) == (Effect.NONE, Effect.BLOCKED)
    assert served.field[-4:] == ("containers", 0, "env", 0)


@pytest.mark.parametrize(("port", "missing"), [("80", 0), ("8080", 1)])
def test_a_port_that_a_service_does_not_have_is_missing(
    port: str, missing: int, wording: RecordedWording
) -> None:
    call = f"        env: [{{name: DB_URL, value: 'http://db.shop:{port}/'}}]\n"
    service = SERVICE.replace("name: web", "name: db").replace("app: web", "app: db")
    bare = service.replace("spec: {", "spec: {clusterIP: None, ")
    db = WEB.replace("web", "db")

    names = missing_names(together(WEB + call, service, db))
    assert len(names) == missing
    wording(names)
    assert missing_names(together(WEB + call, bare, db)) == []


def test_the_pods_of_a_called_service_without_a_workload_are_missing(
    wording: RecordedWording,
) -> None:
    call = "        env: [{name: DB_HOST, value: db.shop.svc}]\n"
    service = SERVICE.replace("name: web", "name: db").replace("app: web", "app: db")
    database = "apiVersion: example.com/v1\nkind: Database\nmetadata: {name: db, namespace: shop}\n"

    names = missing_names(together(WEB + call, service))
    assert len(names) == 1
    wording(names)
    assert missing_names(together(WEB, service)) == []
    assert names[0] not in missing_names(together(WEB + call, service, database))


def test_a_workload_does_not_call_itself() -> None:
    call = "        env: [{name: DB_HOST, value: web}]\n"
    graph = graph_of_text(together(WEB + call, SERVICE))

    assert EdgeKind.HOST not in {edge.kind for edge in graph.edges}
    edge = edges_of(graph, "Service shop/web")["Deployment shop/web"]
    assert (edge.kind, edge.required_state) == (EdgeKind.SELECTOR, RequiredState.READY)


def test_a_url_in_a_custom_resource_or_a_config_map_names_a_service() -> None:
    policy = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: backups}
spec:
  rules:
  - context:
    - apiCall: {service: {url: "http://pvc-plumber.volsync.svc.cluster.local/exists"}}
"""
    settings = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: 'see http://web/'}\n"
    )
    graph = graph_of_text(together(policy, settings, SERVICE))

    assert "Service volsync/pvc-plumber" in edges_of(graph, "ClusterPolicy backups")
    assert edges_of(graph, "ConfigMap shop/web")["Service shop/web"].field == ("data", "a")


CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
CLASS = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.org/disk
"""


def test_a_claim_without_a_class_needs_one_that_is_the_default() -> None:
    named = CLAIM.replace("spec: {", "spec: {storageClassName: fast, ")

    assert missing_names(CLAIM) == ["StorageClass (default)"]
    assert missing_names(together(CLAIM, CLASS)) == []
    assert missing_names(together(CLAIM, CLASS.replace('"true"', '"false"'))) == [
        "StorageClass (default)"
    ]
    assert missing_names(named) == ["StorageClass fast"]
    assert missing_names(
        CLAIM.replace("spec: {", 'spec: {storageClassName: "", volumeName: v, ')
    ) == ["PersistentVolume v"]


CERTIFICATE = """\
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec: {secretName: web-tls, issuerRef: {kind: ClusterIssuer, name: acme}}
"""
ISSUER = """\
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: acme}
spec: {selfSigned: {}}
"""
MANAGER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: cert-manager, namespace: cert-manager}
spec:
  template:
    spec: {containers: [{name: c, image: "quay.io/jetstack/cert-manager-controller:v1"}]}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec: {group: cert-manager.io, names: {kind: Certificate, plural: certificates}, scope: Namespaced}
"""


def test_a_certificate_needs_its_issuer_its_operator_and_its_definition() -> None:
    graph = graph_of_text(together(CERTIFICATE, ISSUER, MANAGER, DEFINITION))
    edges = edges_of(graph, "Certificate shop/web")

    issuer = edges["ClusterIssuer acme"]
    assert (issuer.required_state, issuer.effect) == (RequiredState.READY, Effect.BLOCKED)
    assert edges["Deployment cert-manager/cert-manager"].kind is EdgeKind.OPERATOR
    definition = edges["CustomResourceDefinition certificates.cert-manager.io"]
    assert definition.kind is EdgeKind.DEFINITION
    assert graph.nodes[definition.before].kind is NodeKind.OBJECT


def test_an_issuer_of_the_whole_cluster_is_found_from_every_namespace() -> None:
    elsewhere = CERTIFICATE.replace("{name: web}", "{name: web, namespace: other}")
    graph = graph_of_text(together(elsewhere, ISSUER))

    edge = edges_of(graph, "Certificate other/web")["ClusterIssuer acme"]
    assert graph.nodes[edge.before].kind is NodeKind.OBJECT


def test_the_names_of_a_certificate_are_not_called_services() -> None:
    named = CERTIFICATE.replace("spec: {", "spec: {dnsNames: [db.other.svc], ")

    assert "Service other/db" not in missing_names(named)


def test_a_certificate_makes_the_secret_that_a_pod_mounts() -> None:
    volume = "      volumes: [{name: tls, secret: {secretName: web-tls}}]\n"
    graph = graph_of_text(together(WEB + volume, CERTIFICATE))

    edge = edges_of(graph, "Deployment shop/web")["Secret shop/web-tls"]
    assert graph.nodes[edge.before].name == "Certificate shop/web"


def test_a_kind_that_a_template_defines_needs_no_definition_of_its_own() -> None:
    template = """\
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: k8srequiredlabels}
spec: {crd: {spec: {names: {kind: K8sRequiredLabels}}}}
"""
    constraint = """\
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sRequiredLabels
metadata: {name: team}
"""
    names = missing_names(together(template, constraint))

    assert "CustomResourceDefinition k8srequiredlabels.constraints.gatekeeper.sh" not in names
    assert "CustomResourceDefinition constrainttemplates.templates.gatekeeper.sh" in names


def noted(text: str, name: str, given_text: str) -> str:
    return text.replace("{name: web}", f'{{name: web, annotations: {{{name}: "{given_text}"}}}}', 1)


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n"


@pytest.mark.parametrize(
    ("name", "value", "until"),
    [
        ("tidegate.dev/depends-on", "ConfigMap/shop/first", RequiredState.READY),
        ("tidegate.dev/depends-on", "ConfigMap/first@present", RequiredState.EXISTS),
        (
            "config.kubernetes.io/depends-on",
            "/namespaces/shop/ConfigMap/first",
            RequiredState.READY,
        ),
    ],
)
def test_an_annotation_declares_an_edge(name: str, value: str, until: RequiredState) -> None:
    graph = graph_of_text(together(noted(WEB, name, value), CONFIG))

    edge = edges_of(graph, "Deployment shop/web")["ConfigMap shop/first"]
    assert (edge.kind, edge.strength, edge.required_state) == (
        EdgeKind.ANNOTATION,
        Strength.HARD,
        until,
    )
    assert edge.is_enforced
    assert edge.field == ("metadata", "annotations", name)


def test_argo_cd_ignores_annotations_of_other_tools() -> None:
    web = noted(WEB, "tidegate.dev/depends-on", "ConfigMap/shop/first")
    graph = graph_of_text(together(web, CONFIG), rules=ARGOCD)

    assert not edges_of(graph, "Deployment shop/web")["ConfigMap shop/first"].is_enforced


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tidegate.dev/depends-on", "first"),
        ("tidegate.dev/depends-on", "ConfigMap/first@soon"),
        ("config.kubernetes.io/depends-on", "ConfigMap/shop/first/x"),
        ("kapp.k14s.io/change-rule", "after shop/first"),
    ],
)
def test_an_invalid_annotation_is_reported(name: str, value: str) -> None:
    (wrong,) = graph_of_text(noted(WEB, name, value)).unparsed_annotations

    assert (wrong.annotation, wrong.text) == (name, value)


def test_an_object_awaited_absent_is_not_missing() -> None:
    web = noted(WEB, "tidegate.dev/depends-on", "Job/shop/old@absent")

    assert missing_names(web) == []


def test_change_rules_of_kapp_are_edges() -> None:
    config = CONFIG.replace(
        "{name: first}", '{name: first, annotations: {kapp.k14s.io/change-group: "shop/first"}}'
    )
    web = noted(WEB, "kapp.k14s.io/change-rule", "upsert after upserting shop/first")
    graph = graph_of_text(together(web, config))

    assert (
        edges_of(graph, "Deployment shop/web")["ConfigMap shop/first"].kind is EdgeKind.CHANGE_RULE
    )


def test_dependencies_on_units_and_on_namespaces() -> None:
    graph = graph_of(
        manifests_of(unit_of("database"), NAMESPACE),
        manifests_of(unit_of("app", depends=("database",)), WEB),
    )

    edge = edges_of(graph, "shop/app")["shop/database"]
    assert (edge.kind, edge.strength) == (EdgeKind.DEPENDS_ON, Strength.HARD)
    assert edges_of(graph, "Deployment shop/web")["Namespace shop"].effect is Effect.REJECTED


def test_one_of_two_operators_of_a_kind_is_enough() -> None:
    env = "        envFrom:\n        - secretRef: {name: web-tls}\n"
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: web-tls}\n"
    graph = graph_of_text(together(WEB + env, CERTIFICATE, secret))

    matches = [
        edge
        for edge in graph.edges
        if edge.kind is EdgeKind.REFERENCE and edge.field[-1] == "secretRef"
    ]
    assert len(matches) == 2
    assert len({item.alternative for item in matches}) == 1


def a_task(container: str, volumes: str = "") -> str:
    spec = f"{{restartPolicy: Never, containers: [{container}]{volumes}}}"
    return (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: task, namespace: shop}\n"
        f"spec: {{template: {{spec: {spec}}}}}\n"
    )


def test_a_name_on_a_certificate_is_no_call() -> None:
    args = 'args: [create, "--host=web,web.shop.svc", --namespace=shop, --secret-name=hook]'
    maker = a_task(f"{{name: a, image: ingress-nginx/kube-webhook-certgen, {args}}}")
    caller = a_task(f"{{name: a, image: acme/app, {args}}}")

    assert "Service shop/web" not in edges_of(
        graph_of_text(together(maker, SERVICE)), "Job shop/task"
    )
    assert "Service shop/web" in edges_of(graph_of_text(together(caller, SERVICE)), "Job shop/task")


def test_a_script_that_is_mounted_and_run_calls() -> None:
    mounted = "volumeMounts: [{name: scripts, mountPath: /scripts}]"
    volumes = ", volumes: [{name: scripts, configMap: {name: scripts}}]"
    script = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scripts, namespace: shop}\n"
        "data: {smoke.sh: curl http://web.shop.svc/}\n"
    )
    runs = a_task(f"{{name: a, image: a, command: [sh, /scripts/smoke.sh], {mounted}}}", volumes)
    other = a_task(f"{{name: a, image: a, command: [sh, /opt/smoke.sh], {mounted}}}", volumes)

    called = edges_of(graph_of_text(together(runs, script, SERVICE)), "Job shop/task")
    assert called["Service shop/web"].effect is Effect.FAILS
    assert "Service shop/web" not in edges_of(
        graph_of_text(together(other, script, SERVICE)), "Job shop/task"
    )
