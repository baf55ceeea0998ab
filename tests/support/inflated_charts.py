"""Overlays that inflate the charts of the tests: for ours, and for kustomize with the real helm."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from tests.support.helm_charts import CHARTS

KINDS = (
    *("Zebra", "Ingress", "APIService", "Deployment", "Service", "ConfigMap", "Secret", "Job"),
    *("Namespace", "StatefulSet", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role"),
    *("ValidatingWebhookConfiguration", "RoleBinding", "CronJob", "DaemonSet", "Pod", "Apple"),
    *("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "NetworkPolicy", "IngressClass"),
    *("PodDisruptionBudget", "PriorityClass", "ResourceQuota", "LimitRange", "ReplicaSet"),
    *("MutatingWebhookConfiguration", "HorizontalPodAutoscaler", "CustomResourceDefinition"),
)


class InflatedCase(msgspec.Struct, frozen=True):
    """A kustomization in `app`, more files, and which charts lie where."""

    kustomization: str
    files: dict[str, str] = {}
    charts: dict[str, str] = msgspec.field(default_factory=lambda: {"app/charts/web": "web"})

    def write(self, root: Path) -> Path:
        for path, chart in self.charts.items():
            shutil.copytree(CHARTS / chart, root / path)
        for path, text in {"app/kustomization.yaml": self.kustomization, **self.files}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root


def many_kinds() -> dict[str, str]:
    """A chart with an object of each kind, in two templates."""
    line = "---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
    first = "".join(line.format(kind=kind, name=f"a-{kind.lower()}") for kind in KINDS)
    second = "".join(line.format(kind=kind, name=f"b-{kind.lower()}") for kind in KINDS[::-1])
    return {
        "app/charts/many/Chart.yaml": "apiVersion: v2\nname: many\nversion: 1.0.0\n",
        "app/charts/many/values.yaml": "{}\n",
        "app/charts/many/templates/z.yaml": first,
        "app/charts/many/templates/b/a.yaml": second,
    }


INFLATED = {
    "a chart": InflatedCase("helmCharts: [{name: web, releaseName: shop}]"),
    "with CRDs": InflatedCase("helmCharts: [{name: web, releaseName: shop, includeCRDs: true}]"),
    "without hooks": InflatedCase("helmCharts: [{name: web, releaseName: shop, skipHooks: true}]"),
    "without tests": InflatedCase("helmCharts: [{name: web, releaseName: shop, skipTests: true}]"),
    "in a namespace": InflatedCase(
        "helmCharts: [{name: web, releaseName: shop, namespace: prod}]\nnamespace: other\n"
    ),
    "values of its own": InflatedCase(
        "helmCharts: [{name: web, releaseName: shop, valuesFile: v.yaml}]",
        {"app/v.yaml": "greeting: from the file\nbig: 7654321\n"},
    ),
    "inline values over the chart's": InflatedCase(
        "helmCharts:\n- name: web\n  releaseName: shop\n"
        "  valuesInline: {big: 7654321, removed: {key: null}, ports: [{name: x, port: 1}]}\n"
    ),
    "inline values below the chart's": InflatedCase(
        "helmCharts:\n- name: web\n  releaseName: shop\n  valuesMerge: merge\n"
        "  valuesInline: {big: 7654321, extra: 1}\n"
    ),
    "inline values and nothing else": InflatedCase(
        "helmCharts:\n- name: web\n  releaseName: shop\n  valuesMerge: replace\n"
        "  valuesInline: {greeting: hello, extra: 1.5}\n"
    ),
    "more files of values": InflatedCase(
        "helmCharts:\n- name: web\n  releaseName: shop\n  valuesInline: {big: 1}\n"
        "  additionalValuesFiles: [a.yaml, b/c.yaml]\n",
        {"app/a.yaml": "big: 2\nratio: 2\n", "app/b/c.yaml": "ratio: 3\n---\nbig: 4\n"},
    ),
    "another Kubernetes": InflatedCase(
        "helmCharts:\n- name: web\n  releaseName: shop\n  kubeVersion: 1.31.4\n"
        "  apiVersions: [monitoring.coreos.com/v1]\n"
    ),
    "subcharts": InflatedCase(
        "helmCharts: [{name: umbrella, releaseName: shop}]",
        charts={"app/charts/umbrella": "umbrella"},
    ),
    "two charts from another home": InflatedCase(
        "helmGlobals: {chartHome: ../vendor}\nhelmCharts:\n"
        "- {name: web, releaseName: shop, valuesFile: v.yaml}\n"
        "- {name: queue, releaseName: jobs, namespace: jobs, valuesFile: v.yaml}\n",
        {"app/v.yaml": "depth: 3\n"},
        charts={"vendor/web": "web", "vendor/queue": "queue"},
    ),
    "a chart of a repository that is there already": InflatedCase(
        "helmCharts:\n- name: queue\n  releaseName: shop\n  version: 0.1.0\n"
        "  repo: https://charts.example\n",
        charts={"app/charts/queue-0.1.0/queue": "queue"},
    ),
    "a generator of its own": InflatedCase(
        "generators: [chart.yaml]\nnamePrefix: my-\n",
        {
            "app/chart.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\n"
            "metadata: {name: c}\nname: queue\nreleaseName: shop\nchartHome: vendor\n"
            "valuesInline: {depth: 9}\n"
        },
        charts={"app/vendor/queue": "queue"},
    ),
    "a chart in a base, patched": InflatedCase(
        "resources: [../base]\nnameSuffix: -two\npatches:\n"
        "- {target: {kind: Service}, patch: '- {op: add, path: /spec, value: {a: 1}}'}\n"
        "- target: {kind: Deployment}\n"
        "  patch: '- {op: add, path: /metadata/annotations, value: {a: b}}'\n",
        {"base/kustomization.yaml": "helmCharts: [{name: web, releaseName: shop}]"},
        charts={"base/charts/web": "web"},
    ),
    "helm's order": InflatedCase(
        "helmCharts: [{name: many, releaseName: shop}]\nsortOptions: {order: fifo}\n",
        many_kinds(),
        charts={},
    ),
    "hooks after the others": InflatedCase(
        "helmCharts: [{name: web, releaseName: shop, includeCRDs: true}]\n"
        "sortOptions: {order: fifo}\n"
    ),
}

REFUSED = {
    "a dependency that is not in the chart": InflatedCase(
        "helmCharts: [{name: neighbour, releaseName: shop}]",
        {"app/charts/neighbour/values.yaml": "{}\n"},
        charts={"app/charts/neighbour": "neighbour", "app/charts/queue": "queue"},
    ),
    "a template that cannot be rendered": InflatedCase(
        "helmCharts: [{name: broken, releaseName: shop, valuesInline: {how: fail}}]",
        charts={"app/charts/broken": "broken"},
    ),
    "values that do not fit": InflatedCase(
        "helmCharts: [{name: schema, releaseName: shop, valuesInline: {replicas: many}}]",
        charts={"app/charts/schema": "schema"},
    ),
    "a name that Helm does not take": InflatedCase("helmCharts: [{name: web, releaseName: Shop_}]"),
    "a Kubernetes that the chart does not want": InflatedCase(
        "helmCharts: [{name: picky, releaseName: shop, kubeVersion: 1.10.0}]",
        {"app/charts/picky/values.yaml": "{}\n"},
        charts={"app/charts/picky": "picky"},
    ),
    "values that are no mapping": InflatedCase(
        "helmCharts: [{name: web, releaseName: shop, additionalValuesFiles: [v.yaml]}]",
        {"app/v.yaml": "- a\n"},
    ),
    "a library": InflatedCase(
        "helmCharts: [{name: library, releaseName: shop}]",
        {"app/charts/library/values.yaml": "{}\n"},
        charts={"app/charts/library": "library"},
    ),
}
