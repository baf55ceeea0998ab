"""Classic mistakes in the order of a deployment, each in the smallest repository that has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.file_trees import GIT_REPOSITORY, URL, kustomization, write_files
from tests.support.tidegate_runs import tidegate

Files = dict[str, str]
WAVE = 'argocd.argoproj.io/sync-wave: "{}"'.format
HOOK = "argocd.argoproj.io/hook: {}".format
CREATE_NAMESPACE = "syncOptions: [CreateNamespace=true]"
CHART = "https://charts.example.com"


class Mistake(NamedTuple):
    """A mistake, and the findings of which one names it."""

    name: str
    files: Files
    codes: str
    """Codes, separated by spaces."""
    mentions: str
    """A name in the finding that shows that it has the right cause."""


def manifest(
    kind: str,
    name: str,
    spec: str = "",
    *,
    namespace: str = "shop",
    notes: str = "",
    more: str = "",
) -> str:
    """Return an object; `kind` has its API version, `spec` is written in flow style."""
    api_version, _, kind_name = kind.rpartition(" ")
    metadata = f"name: {name}" + (f", namespace: {namespace}" if namespace else "")
    metadata += f", annotations: {{{notes}}}" if notes else ""
    lines = [f"apiVersion: {api_version}", f"kind: {kind_name}", f"metadata: {{{metadata}}}"]
    lines += [f"spec: {{{spec}}}"] if spec else []
    return "\n".join(("---", *lines, *([more] if more else []), ""))


def config_map(name: str = "settings", notes: str = "", namespace: str = "shop") -> str:
    return manifest("v1 ConfigMap", name, notes=notes, namespace=namespace, more="data: {a: b}")


def namespace(name: str = "shop", notes: str = "") -> str:
    return manifest("v1 Namespace", name, namespace="", notes=notes)


def pods(name: str, container: str = "", spec: str = "") -> str:
    container = f'name: main, image: "shop/{name}:1"' + (f", {container}" if container else "")
    spec = f", {spec}" if spec else ""
    return f"metadata: {{labels: {{app: {name}}}}}, spec: {{containers: [{{{container}}}]{spec}}}"


def deployment(name: str = "web", container: str = "", notes: str = "", spec: str = "") -> str:
    template = pods(name, container, spec)
    return manifest(
        "apps/v1 Deployment",
        name,
        f"selector: {{matchLabels: {{app: {name}}}}}, template: {{{template}}}",
        notes=notes,
    )


def database(notes: str = "") -> str:
    """Return a StatefulSet and its Service."""
    template = pods("db", "ports: [{containerPort: 5432}]")
    return manifest(
        "apps/v1 StatefulSet",
        "db",
        f"serviceName: db, selector: {{matchLabels: {{app: db}}}}, template: {{{template}}}",
        notes=notes,
    ) + manifest("v1 Service", "db", "selector: {app: db}, ports: [{port: 5432}]", notes=notes)


def job(name: str = "migrate", container: str = "", notes: str = "", spec: str = "") -> str:
    container = container or "command: [migrate]"
    template = pods(name, container, "restartPolicy: Never")
    fields = f"{spec}, " if spec else ""
    return manifest("batch/v1 Job", name, f"{fields}template: {{{template}}}", notes=notes)


READS_SETTINGS = "envFrom: [{configMapRef: {name: settings}}]"
READS_PASSWORD = "env: [{name: P, valueFrom: {secretKeyRef: {name: password, key: p}}}]"
CALLS_DATABASE = 'command: [migrate], env: [{name: DATABASE_URL, value: "postgres://db:5432/shop"}]'


def secret(name: str = "password", notes: str = "") -> str:
    """Return a SealedSecret, from which a controller creates the Secret of its name."""
    return manifest(
        "bitnami.com/v1alpha1 SealedSecret",
        name,
        f"encryptedData: {{p: AgA}}, template: {{metadata: {{name: {name}, namespace: shop}}}}",
        notes=notes,
    )


def crd(name: str = "Widget", group: str = "example.com", notes: str = "") -> str:
    plural = f"{name.lower()}s"
    schema = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
    return manifest(
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        f"{plural}.{group}",
        f"group: {group}, scope: Namespaced, names: {{kind: {name}, plural: {plural}}}, versions:"
        f" [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}]",
        namespace="",
        notes=notes,
    )


def widget(notes: str = "") -> str:
    return manifest("example.com/v1 Widget", "blue", "size: 1", notes=notes)


def application(
    name: str = "shop",
    path: str = "shop",
    *,
    notes: str = "",
    policy: str = f"automated: {{}}, {CREATE_NAMESPACE}",
    project: str = "default",
    source: str = "",
    to: str = "shop",
) -> str:
    source = source or f"repoURL: {URL}, targetRevision: main, path: {path}"
    return manifest(
        "argoproj.io/v1alpha1 Application",
        name,
        f"project: {project}, source: {{{source}}}, syncPolicy: {{{policy}}},"
        f" destination: {{server: https://kubernetes.default.svc, namespace: {to}}}",
        namespace="argocd",
        notes=notes,
    )


def chart(name: str, version: str = "1.0.0") -> str:
    return f"repoURL: {CHART}, chart: {name}, targetRevision: {version}"


def application_set(elements: str, labels: str = "", strategy: str = "", notes: str = "") -> str:
    """Return an ApplicationSet with an Application for each element with `name` and `env`."""
    template = (
        "metadata: {name: '{{.name}}', labels: {env: '{{.env}}'}}, spec: {project: default,"
        f" source: {{repoURL: {URL}, targetRevision: main, path: '{{{{.name}}}}'}},"
        " destination: {server: https://kubernetes.default.svc, namespace: shop},"
        f" syncPolicy: {{automated: {{}}, {CREATE_NAMESPACE}}}}}"
    )
    strategy = f"strategy: {strategy}, " if strategy else ""
    return manifest(
        "argoproj.io/v1alpha1 ApplicationSet",
        "all",
        f"goTemplate: true, generators: [{{list: {{elements: [{elements}]}}}}], {strategy}"
        f"template: {{{template}}}{labels}",
        namespace="argocd",
        notes=notes,
    )


def argo(*objects: str) -> Files:
    """Return an Application and the objects that it deploys."""
    return {"cd/shop.yaml": application(), "shop/all.yaml": "".join(objects)}


ROOT = {"cd/root.yaml": application("root", "apps", to="argocd", policy="automated: {}")}
HEALTH_CHECK = manifest(
    "v1 ConfigMap",
    "argocd-cm",
    namespace="argocd",
    more="""\
data:
  resource.customizations.health.argoproj.io_Application: |
    hs = {status = "Progressing", message = ""}
    if obj.status ~= nil and obj.status.health ~= nil then hs.status = obj.status.health.status end
    return hs
""",
)
APPS_IN_WAVES = {
    **ROOT,
    "apps/base.yaml": application("base", "base"),
    "apps/shop.yaml": application("shop", "shop", notes=WAVE(1)),
    "base/all.yaml": database(),
    "shop/all.yaml": deployment(),
}
STEPS = (
    "{{type: RollingSync, rollingSync: {{steps:"
    " [{{matchExpressions: [{{key: env, operator: In, values: [{}]}}]}},"
    " {{matchExpressions: [{{key: env, operator: In, values: [{}]}}]}}]}}}}"
).format
TWO_ENVIRONMENTS = "{name: dev, env: dev}, {name: prod, env: prod}"
PROGRESSIVE = manifest(
    "v1 ConfigMap",
    "argocd-cmd-params-cm",
    namespace="argocd",
    more='data: {applicationsetcontroller.enable.progressive.syncs: "true"}',
)
WEBHOOK = manifest(
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    "policy",
    namespace="",
    more="webhooks:\n- {name: pods.example.com, failurePolicy: Fail, sideEffects: None,"
    " admissionReviewVersions: [v1],"
    " clientConfig: {service: {name: policy, namespace: shop, path: /}},"
    ' rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}',
)
ISSUER = manifest("cert-manager.io/v1 ClusterIssuer", "letsencrypt", "selfSigned: {}", namespace="")
CERTIFICATES = crd("Issuer", "cert-manager.io")
CERTIFICATE = manifest(
    "cert-manager.io/v1 Certificate",
    "web",
    "secretName: web-tls, dnsNames: [web.example.com],"
    " issuerRef: {name: letsencrypt, kind: ClusterIssuer}",
)
STORE = manifest(
    "external-secrets.io/v1 ClusterSecretStore",
    "vault",
    'provider: {vault: {server: "https://vault.example.com", path: secret, version: v2,'
    " auth: {tokenSecretRef: {name: token, namespace: shop, key: token}}}}",
    namespace="",
)
CLAIM = (
    "accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 1Gi}}"
)
LOCAL_CLASS = manifest("storage.k8s.io/v1 StorageClass", "local", namespace="").rstrip() + (
    "\nprovisioner: rancher.io/local-path\nvolumeBindingMode: WaitForFirstConsumer\n"
)
CLUSTER = manifest("postgresql.cnpg.io/v1 Cluster", "db", "instances: 1, storage: {size: 1Gi}")

ARGO_CD = [
    Mistake(
        "migration before sync reads settings of the sync",
        argo(config_map(), job(container=READS_SETTINGS, notes=HOOK("PreSync"))),
        "ORD004",
        "settings",
    ),
    Mistake(
        "migration before sync calls the database of the sync",
        argo(database(), job(container=CALLS_DATABASE, notes=HOOK("PreSync"))),
        "ORD004 ORD056 ORD006",
        "migrate",
    ),
    Mistake(
        "migration in the wave of its database",
        argo(
            database(),
            job(container=CALLS_DATABASE, notes=HOOK("Sync"), spec="backoffLimit: 0"),
        ),
        "ORD056",
        "migrate",
    ),
    Mistake(
        "migration after the sync",
        argo(
            deployment("api", CALLS_DATABASE),
            job("api-migrate", notes=HOOK("PostSync")).replace("shop/api-migrate:", "shop/api:"),
        ),
        "ORD020",
        "migrate",
    ),
    Mistake(
        "plain migration Job with a fixed name",
        argo(deployment(), job(notes=WAVE(-1))),
        "ORD019",
        "migrate",
    ),
    Mistake(
        "settings in a later wave than their reader",
        argo(config_map(notes=WAVE(1)), deployment(container=READS_SETTINGS)),
        "ORD006",
        "settings",
    ),
    Mistake(
        "secret in a later wave than its reader",
        argo(secret(notes=WAVE(2)), deployment(container=READS_PASSWORD, notes=WAVE(1))),
        "ORD006",
        "password",
    ),
    Mistake(
        "wave that is a number",
        argo(database(), deployment(notes="argocd.argoproj.io/sync-wave: 1")),
        "ORD013",
        "sync-wave",
    ),
    Mistake(
        "wave that is misspelled",
        argo(database(), deployment(notes='argocd.argoproj.io/sync-waves: "1"')),
        "ORD013 argo.annotation ORD052",
        "web",
    ),
    Mistake(
        "wave on the pods",
        argo(
            database(),
            deployment().replace(
                "labels: {app: web}}, spec",
                f"labels: {{app: web}}, annotations: {{{WAVE(1)}}}}}, spec",
            ),
        ),
        "ORD013",
        "web",
    ),
    Mistake(
        "unknown hook",
        argo(deployment(), job(notes=HOOK("Presync"))),
        "argo.hook",
        "Presync",
    ),
    Mistake(
        "unknown deletion policy of a hook",
        argo(
            job(
                notes=f"{HOOK('PreSync')},"
                " argocd.argoproj.io/hook-delete-policy: AfterHookSucceeded"
            )
        ),
        "argo.hook",
        "AfterHookSucceeded",
    ),
    Mistake(
        "misspelled sync option",
        {
            "cd/shop.yaml": application(
                policy="automated: {}, syncOptions: [CreateNamespaces=true]"
            ),
            "shop/all.yaml": deployment(),
        },
        "ORD055 argo.option",
        "CreateNamespaces",
    ),
    Mistake(
        "namespace that nothing creates",
        {"cd/shop.yaml": application(policy="automated: {}"), "shop/all.yaml": deployment()},
        "ORD061",
        "shop",
    ),
    Mistake(
        "custom resource in an earlier wave than its operator",
        argo(
            CERTIFICATES,
            manifest("cert-manager.io/v1 Issuer", "own", "selfSigned: {}", notes=WAVE(1)),
            deployment("cert-manager", notes=WAVE(2)).replace(
                "shop/cert-manager:1", "quay.io/jetstack/cert-manager-controller:v1.18.0"
            ),
        ),
        "ORD008",
        "Issuer",
    ),
    Mistake(
        "custom resource of a chart in the same wave",
        {
            **ROOT,
            "apps/cert-manager.yaml": application(
                "cert-manager", source=chart("cert-manager"), to="cert-manager"
            ),
            "apps/issuers.yaml": application("issuers", "issuers"),
            "issuers/all.yaml": ISSUER,
        },
        "ORD063 ORD009 ORD008",
        "cert-manager",
    ),
    Mistake(
        "waves of Applications without a health check",
        APPS_IN_WAVES,
        "ORD011",
        "root",
    ),
    Mistake(
        "Applications that need each other without waves",
        {
            **ROOT,
            "apps/crds.yaml": application("crds", "crds"),
            "apps/shop.yaml": application("shop", "shop"),
            "crds/all.yaml": crd(),
            "shop/all.yaml": widget(),
        },
        "ORD063",
        "crds",
    ),
    Mistake(
        "wave that does not wait for an ApplicationSet",
        {
            **ROOT,
            "apps/set.yaml": application_set("{name: base, env: dev}"),
            "apps/shop.yaml": application("shop", "shop", notes=WAVE(1)),
            "apps/argocd.yaml": HEALTH_CHECK,
            "base/all.yaml": database(),
            "shop/all.yaml": deployment(),
        },
        "ORD057",
        "all",
    ),
    Mistake(
        "step that matches no Application",
        {
            "cd/all.yaml": PROGRESSIVE
            + application_set(TWO_ENVIRONMENTS, strategy=STEPS("dev", "production")),
            "dev/all.yaml": config_map("dev"),
            "prod/all.yaml": config_map("prod"),
        },
        "ORD015 appset.steps appset.unmatched",
        "all",
    ),
    Mistake(
        "steps while progressive syncs are disabled",
        {
            "cd/all.yaml": PROGRESSIVE.replace('"true"', '"false"')
            + application_set(TWO_ENVIRONMENTS, strategy=STEPS("dev", "prod")),
            "dev/all.yaml": config_map("dev"),
            "prod/all.yaml": config_map("prod"),
        },
        "appset.progressive",
        "all",
    ),
    Mistake(
        "object of two Applications",
        {
            **ROOT,
            "apps/all.yaml": application("one", "one") + application("two", "two"),
            "one/all.yaml": config_map(),
            "two/all.yaml": config_map(),
        },
        "ORD030",
        "settings",
    ),
    Mistake(
        "Application in a subdirectory of its parent",
        {
            **ROOT,
            "apps/one.yaml": application("one", "one"),
            "apps/more/two.yaml": application("two", "two"),
            "one/all.yaml": config_map("one"),
            "two/all.yaml": config_map("two"),
        },
        "ORD048",
        "two",
    ),
    Mistake(
        "claim in an earlier wave than its pod",
        argo(
            LOCAL_CLASS.replace("name: local", f"name: local, annotations: {{{WAVE(-2)}}}"),
            manifest("v1 PersistentVolumeClaim", "data", CLAIM, notes=WAVE(-1)),
            deployment(spec="volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"),
        ),
        "ORD007",
        "data",
    ),
    Mistake(
        "webhook that blocks its own pods",
        argo(
            WEBHOOK,
            deployment("policy"),
            manifest("v1 Service", "policy", "selector: {app: policy}, ports: [{port: 443}]"),
        ),
        "ORD024",
        "policy",
    ),
    Mistake(
        "secret store in an earlier wave than its operator",
        {
            **ROOT,
            "apps/argocd.yaml": HEALTH_CHECK,
            "apps/stores.yaml": application("stores", "stores"),
            "apps/operator.yaml": application(
                "external-secrets", source=chart("external-secrets"), notes=WAVE(1)
            ),
            "stores/all.yaml": STORE,
        },
        "ORD042 ORD008 ORD063",
        "external-secrets",
    ),
    Mistake(
        "paused Deployment in an early wave",
        argo(
            deployment(notes=WAVE(0)).replace("spec: {selector", "spec: {paused: true, selector"),
            deployment("late", notes=WAVE(1)),
        ),
        "ORD060",
        "web",
    ),
    Mistake(
        "project that forbids the namespace",
        {
            "cd/project.yaml": manifest(
                "argoproj.io/v1alpha1 AppProject",
                "team",
                'sourceRepos: ["*"], destinations: [{server: "*", namespace: other}]',
                namespace="argocd",
            ),
            "cd/shop.yaml": application(project="team"),
            "shop/all.yaml": deployment(),
        },
        "argo.project",
        "team",
    ),
]


def flux(*units: str, **folders: str) -> Files:
    """Return Flux units of a cluster, and the objects of each folder."""
    files = {f"{name}/all.yaml": text for name, text in folders.items()}
    return {"clusters/prod/flux.yaml": GIT_REPOSITORY + "".join(units), **files}


def ks(name: str, more: str = "") -> str:
    return kustomization(name, f"./{name}", more=more)


def depends_on(*names: str) -> str:
    return f"dependsOn: [{', '.join(f'{{name: {name}}}' for name in names)}]"


def release(name: str, more: str = "", *, chart_name: str = "", to: str = "shop") -> str:
    repository = manifest(
        "source.toolkit.fluxcd.io/v1 HelmRepository",
        f"{name}-charts",
        f"interval: 1h, url: {CHART}",
        namespace=to,
    )
    chart_spec = (
        f"chart: {chart_name or name}, version: 1.0.0,"
        f" sourceRef: {{kind: HelmRepository, name: {name}-charts}}"
    )
    more = f", {more}" if more else ""
    return repository + manifest(
        "helm.toolkit.fluxcd.io/v2 HelmRelease",
        name,
        f"interval: 1h, chart: {{spec: {{{chart_spec}}}}}{more}",
        namespace=to,
    )


WAITS = "wait: true"
SLOW = deployment(
    container="startupProbe: {httpGet: {path: /, port: 80}, periodSeconds: 10,"
    " failureThreshold: 60, initialDelaySeconds: 120}"
)

FLUX = [
    Mistake(
        "custom resources without dependsOn",
        flux(ks("crds", WAITS), ks("shop"), crds=crd() + namespace(), shop=widget()),
        "ORD063",
        "crds",
    ),
    Mistake(
        "namespace of another Kustomization without dependsOn",
        flux(ks("base", WAITS), ks("shop"), base=namespace(), shop=deployment()),
        "ORD063",
        "base",
    ),
    Mistake(
        "misspelled dependsOn",
        flux(
            ks("database", WAITS),
            ks("shop", depends_on("databases")),
            database=namespace() + database(),
            shop=deployment(),
        ),
        "ORD001",
        "databases",
    ),
    Mistake(
        "dependsOn in another namespace",
        flux(
            kustomization("database", "./database", namespace="infra", more=WAITS),
            ks("shop", depends_on("database")),
            database=namespace() + namespace("infra") + database(),
            shop=deployment(),
        ),
        "ORD001",
        "database",
    ),
    Mistake(
        "circle of dependencies",
        flux(
            ks("base", depends_on("shop")),
            ks("shop", depends_on("base")),
            base=namespace(),
            shop=deployment(),
        ),
        "ORD002",
        "shop",
    ),
    Mistake(
        "dependency that does not wait",
        flux(
            ks("database"),
            ks("shop", depends_on("database")),
            database=namespace() + database(),
            shop=deployment(container=CALLS_DATABASE),
        ),
        "ORD016",
        "database",
    ),
    Mistake(
        "health check of an object that does not exist",
        flux(
            ks(
                "shop",
                "healthChecks:"
                " [{apiVersion: apps/v1, kind: Deployment, name: wep, namespace: shop}]",
            ),
            shop=namespace() + deployment(),
        ),
        "ORD001 flux.uncheckable",
        "wep",
    ),
    Mistake(
        "timeout below the time of the start",
        flux(
            ks("shop", f"{WAITS}, timeout: 1m"),
            ks("late", depends_on("shop")),
            shop=namespace() + SLOW,
            late=config_map("late"),
        ),
        "ORD018",
        "shop",
    ),
    Mistake(
        "waiting for a custom resource that has no status yet",
        flux(
            ks("certificates", WAITS),
            ks("shop", depends_on("certificates")),
            certificates=namespace() + CERTIFICATE,
            shop=deployment(container="envFrom: [{secretRef: {name: web-tls}}]"),
        ),
        "ORD010",
        "web",
    ),
    Mistake(
        "variables that come from the unit that reads them",
        flux(
            ks("shop", "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"),
            shop=namespace() + config_map("vars", namespace="flux-system") + deployment(),
        ),
        "ORD006",
        "vars",
    ),
    Mistake(
        "issuer beside its operator",
        flux(
            ks("cert", WAITS),
            cert=namespace("cert-manager") + release("cert-manager", to="cert-manager") + ISSUER,
        ),
        "ORD008 ORD063 ORD009",
        "letsencrypt",
    ),
    Mistake(
        "certificates without dependsOn on their operator",
        flux(
            ks("operator", WAITS),
            ks("other", depends_on("operator")),
            ks("shop"),
            operator=namespace("cert-manager")
            + release("cert-manager", to="cert-manager")
            + namespace(),
            other=config_map("other"),
            shop=ISSUER + CERTIFICATE,
        ),
        "ORD063",
        "operator",
    ),
    Mistake(
        "release without its CRDs",
        flux(
            ks("operator", WAITS),
            ks("shop", depends_on("operator")),
            operator=namespace("cert-manager")
            + release("cert-manager", "install: {crds: Skip}", to="cert-manager"),
            shop=ISSUER,
        ),
        "ORD061",
        "crds",
    ),
    Mistake(
        "HelmRelease that depends on a Kustomization",
        flux(
            ks("base", WAITS),
            ks("shop"),
            base=namespace(),
            shop=release("web", depends_on("base")),
        ),
        "ORD001",
        "base",
    ),
    Mistake(
        "values from a Secret that does not exist",
        flux(
            ks("shop"),
            shop=namespace()
            + manifest("v1 Secret", "web-values", more="stringData: {values.yaml: ENC}")
            + release("web", "valuesFrom: [{kind: Secret, name: web-value}]"),
        ),
        "ORD061 render.data source.object",
        "web-value",
    ),
    Mistake(
        "suspended dependency",
        flux(
            ks("base", f"{WAITS}, suspend: true"),
            ks("shop", depends_on("base")),
            base=namespace(),
            shop=deployment(),
        ),
        "units.blocked",
        "base",
    ),
    Mistake(
        "sync waves of Argo CD",
        flux(
            ks("shop", WAITS),
            shop=namespace() + config_map(notes=WAVE(-1)) + deployment(notes=WAVE(1)),
        ),
        "ORD052",
        "shop",
    ),
    Mistake(
        "plain Job that cannot run again",
        flux(ks("shop", WAITS), shop=namespace() + job()),
        "ORD019",
        "migrate",
    ),
    Mistake(
        "migration beside its application",
        flux(
            ks("shop", f"{WAITS}, force: true"),
            shop=namespace()
            + deployment("api", CALLS_DATABASE)
            + job("api-migrate").replace("shop/api-migrate:", "shop/api:")
            + database(),
        ),
        "ORD020 ORD056",
        "migrate",
    ),
    Mistake(
        "expression that is true at once",
        flux(
            ks(
                "shop",
                f"{WAITS}, healthCheckExprs: [{{apiVersion: example.com/v1, kind: Widget,"
                """ current: "status.conditions.all(e, e.status == 'True')"}]""",
            ),
            ks("late", depends_on("shop")),
            shop=namespace() + crd() + widget(),
            late=config_map("late"),
        ),
        "ORD017",
        "`all`",
    ),
    Mistake(
        "unit in two files",
        {
            **flux(ks("shop"), shop=namespace() + deployment(), other=config_map("other")),
            "clusters/prod/more.yaml": ks("shop").replace("./shop", "./other"),
        },
        "ORD014",
        "shop",
    ),
    Mistake(
        "encrypted Secret without decryption",
        flux(
            ks("shop"),
            shop=namespace()
            + manifest(
                "v1 Secret",
                "password",
                more="stringData: {p: 'ENC[AES256_GCM,data:8dsF,iv:Aa==,tag:Bb==,type:str]'}\n"
                "sops: {age: [{recipient: age1x, enc: x}], mac: 'ENC[AES256_GCM,data:x]',"
                " version: 3.9.0, lastmodified: '2026-01-01T00:00:00Z'}",
            ),
        ),
        "ORD045",
        "decrypt",
    ),
    Mistake(
        "database of an operator without dependsOn",
        flux(
            ks("operators", WAITS),
            ks("other", depends_on("operators")),
            ks("shop"),
            operators=namespace() + release("cloudnative-pg"),
            other=config_map("other"),
            shop=CLUSTER,
        ),
        "ORD063",
        "operators",
    ),
]


def reported(root: Path) -> list[tuple[str, str]]:
    """Return code and text of the errors and warnings of `lint`."""
    ran = tidegate("lint", root, "--offline", "-o", "json")
    assert ran.stdout, ran.stderr
    return [
        (finding["code"], json.dumps(finding))
        for finding in json.loads(ran.stdout)["findings"]
        if finding["severity"] != "note"
    ]


@pytest.mark.parametrize("mistake", [*ARGO_CD, *FLUX], ids=lambda mistake: mistake.name)
def test_a_classic_mistake_is_named(tmp_path: Path, mistake: Mistake) -> None:
    root = write_files(tmp_path, mistake.files)

    findings = reported(root)

    codes = mistake.codes.split()
    assert [code for code, text in findings if code in codes and mistake.mentions in text], findings
