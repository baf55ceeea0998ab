"""Sets at random: generators in each other, templates of both languages, a small repository."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tidegate.model.k8s.objects import Json, JsonObject

URL = "https://git.example.com/shop/platform.git"
FILES = {
    "apps/web/config.yaml": "name: web\nreplicas: 3\ntier: {level: 1, tags: [a]}\nport: 1000000\n",
    "apps/web/eu/config.yaml": "name: web-eu\nratio: 0.25\nnothing: null\n",
    "apps/cart/config.json": '{"name": "cart", "on": true, "tier": {"level": 2}}',
    "apps/Pay_Ments/config.yaml": "- name: pay\n  env: dev\n- name: pay-prod\n  env: prod\n",
    "apps/empty/config.yaml": "",
    "apps/web-api/deployment.yaml": "name: api\n",
    "config.yaml": "name: top\n",
    "infra/.hidden/config.yaml": "name: hidden\n",
    "infra/dns/zone/config.yaml": "name: dns\nenv: prod\n",
}
DIRECTORIES = ["apps/*", "apps/web*", "*/*", "infra/*/*", "apps/[a-d]*", "nowhere/*", "apps/web"]
PATTERNS = [
    "apps/*/config.yaml",
    "apps/**/config.yaml",
    "**/config.json",
    "*.yaml",
    "apps/web",
    "infra/",
    "apps/?????/config.*",
]
TEXTS = ["web", "Feature/A_b.c", "x" * 70 + "-tail", "ünï cödé", "", "a-b--c", "prod", "1"]
PLAIN = [
    "{{name}}",
    "{{ name }}-{{env}}",
    "{{path}}",
    "{{path.basename}}",
    "{{path.basenameNormalized}}",
    "{{path[0]}}/{{path[1]}}",
    "{{path.filename}}",
    "{{p.path.basename}}",
    "{{values.x}}",
    "{{tier.level}}-{{tier.tags.0}}",
    "{{port}} {{ratio}} {{nothing}}",
    "{{metadata.labels.env}}",
    "{{nameNormalized}} {{server}}",
    "{{unknown}}",
    "{{}} {{ }}",
    "plain",
    "{{list}}",
]
GO = [
    "{{ .name }}",
    "{{.name}}-{{ .env }}",
    "{{ .path.path }}",
    "{{ .path.basename | upper }}",
    "{{ .path.basenameNormalized }}",
    "{{ index .path.segments 0 }}",
    "{{ .path.filenameNormalized }}",
    "{{ .p.path.basename }}",
    "{{ .values.x }}",
    "{{ .tier.level }}",
    "{{ .port }} {{ .ratio }}",
    "{{ .name | slugify }}",
    "{{ slugify 10 .name }}",
    "{{ slugify 12 false .name }}-{{ normalize .name }}",
    '{{ .name | default "none" | normalize | trunc 8 }}',
    '{{ if eq .env "prod" }}live{{ else }}test{{ end }}',
    "{{- range $i, $e := .list }}{{ if $i }},{{ end }}{{ $e }}{{ end -}}",
    "{{ .metadata.labels.env }}",
    "{{ .nameNormalized }} {{ .server }}",
    "{{ toYaml .tier }}",
    "{{ .tier | toJson }}",
    '{{ (fromYaml "a: {b: 1}").a.b }}{{ index (fromYamlArray "[x, y]") 1 }}',
    '{{ dig "level" "?" .tier }}',
    '{{ (fromJson "[1, 2]") | len }}',
    "{{ .unknown }}",
    '{{ hasKey . "env" }}',
    '{{ printf "%s-%v" .name .replicas | quote }}',
    "plain",
    '{{ env "HOME" }}',
]
SAFE = [
    "{{ .name }}",
    "{{.name}}-{{ .env }}",
    "{{ .path }}",
    "{{ with .path }}{{ .basenameNormalized }}/{{ index .segments 0 }}{{ end }}",
    "{{ if .path }}{{ .path.path }} {{ .path.basename | upper }}{{ end }}",
    "{{ with .p }}{{ .path.path }}{{ end }}",
    "{{ with .values }}{{ .x }}{{ end }}",
    "{{ .port }} {{ .ratio }} {{ .replicas }}",
    '{{ .name | default "No Name_" | slugify }}',
    '{{ slugify 10 (.name | default "a-long-name-with-dashes") }}',
    "{{ .name | toString | slugify 12 false }}-{{ normalize (toString .name) }}",
    '{{ if eq (default "" .env) "prod" }}live{{ else }}test{{ end }}',
    "{{- range $i, $e := .list }}{{ if $i }},{{ end }}{{ $e }}{{ end -}}",
    "{{ with .metadata }}{{ .labels.env }}{{ end }} {{ .server }}",
    "{{ toYaml .tier }}",
    "{{ . | toJson }}",
    "{{ .unknown }}",
    '{{ hasKey . "env" }}',
    '{{ printf "%s-%v" .name .replicas | quote }}',
    '{{ (fromYaml "a: {b: 1}").a.b }}{{ index (fromYamlArray "[x, y]") 1 }}',
    "plain",
]
"""What Go can do with whatever a generator finds, unless it is strict."""
SECRETS: list[Json] = [
    {
        "metadata": {
            "name": name,
            "namespace": "argocd",
            "labels": {"argocd.argoproj.io/secret-type": "cluster", "env": env},
            "annotations": {"team": "a b"},
        },
        "data": {"name": data_name, "server": server},
    }
    for name, env, data_name, server in [
        ("east", "prod", "RWFzdF8x", "aHR0cHM6Ly9lYXN0"),
        ("west", "dev", "d2VzdA==", "aHR0cHM6Ly93ZXN0"),
    ]
]


class Dice:
    """One set after another; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.is_go = False

    def question(self) -> JsonObject:
        self.is_go = self.random.random() < 0.6
        many = self.random.choice([1, 1, 2])
        spec: JsonObject = {
            "goTemplate": self.is_go,
            "generators": [self.entry(0) for _ in range(many)],
            "template": self.template(),
        }
        if self.is_go and self.often(0.2):
            options = ["missingkey=error", "missingkey=zero"]
            spec["goTemplateOptions"] = [self.random.choice(options)]
        if self.random.random() < 0.25:
            spec["templatePatch"] = self.patch()
        if self.random.random() < 0.2:
            spec["syncPolicy"] = {"preserveResourcesOnDeletion": True}
        metadata: JsonObject = {"name": "set", "namespace": "argocd"}
        return {
            "set": {"metadata": metadata, "spec": spec},
            "files": dict(FILES),
            "secrets": SECRETS,
        }

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def text(self) -> str:
        if not self.is_go:
            return self.random.choice(PLAIN)
        return self.random.choice(SAFE if self.often(0.93) else GO)

    def template(self) -> JsonObject:
        few = [self.text() for _ in range(3)]
        labels: JsonObject = {"env": few[0]}
        if self.random.random() < 0.3:
            labels[f"key-{self.text()}"] = "x"
        metadata: JsonObject = {"name": few[1], "labels": labels}
        if self.random.random() < 0.2:
            metadata["finalizers"] = ["mine"]
        helm: JsonObject = {
            "valuesObject": {"a": few[2], "b": {"c": self.text(), "d": None}, "n": 1}
        }
        return {
            "metadata": metadata,
            "spec": {
                "project": "default",
                "source": {"repoURL": URL, "path": self.text(), "helm": helm},
                "destination": {"name": "in-cluster", "namespace": "ns"},
            },
        }

    def patch(self) -> str:
        name = self.random.choice(["name", "unknown"])
        tag = f"{{{{ .{name} }}}}" if self.is_go else f"{{{{{name}}}}}"
        return self.random.choice(
            [
                f"metadata:\n  annotations:\n    by: '{tag}'\n",
                "metadata:\n  finalizers: [other]\nspec:\n  project: else\n",
                "spec:\n  source: {targetRevision: v1, helm: {releaseName: r}}\n",
                '{"spec": {"destination": {"namespace": null}, "syncPolicy": {"automated": {}}}}',
                f"spec:\n  info: [{{name: a, value: '{tag}'}}]\n",
            ]
        )

    def entry(self, depth: int) -> JsonObject:
        simple: list[Callable[[], JsonObject]] = [
            self.list,
            self.directories,
            self.files,
            self.clusters,
        ]
        nested: list[Callable[[], JsonObject]] = [
            lambda: self.matrix(depth),
            lambda: self.merge(depth),
        ]
        made = self.random.choice([*simple, *(nested * 2 if depth < 2 else [])])()
        if self.random.random() < 0.15:
            selectors: list[JsonObject] = [
                {"matchLabels": {"env": "prod"}},
                {"matchExpressions": [{"key": "name", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev"]}]},
                {"matchExpressions": [{"key": "path.path", "operator": "DoesNotExist"}]},
            ]
            made["selector"] = self.random.choice(selectors)
        return made

    def list(self) -> JsonObject:
        elements: list[Json] = []
        for _ in range(self.random.randrange(4)):
            item: JsonObject = {"name": self.random.choice(TEXTS)}
            if self.random.random() < 0.7:
                item["env"] = self.random.choice(["dev", "prod"])
            if self.random.random() < 0.2:
                item["values"] = {"x": "y"}
            if self.is_go and self.random.random() < 0.5:
                item |= {"replicas": 2, "list": ["a", 1], "tier": {"level": 1.5}}
            elements.append(item)
        made: JsonObject = {"elements": elements}
        if self.random.random() < 0.15:
            made["elementsYaml"] = "- {name: yaml, env: prod}\n- name: more\n"
        if self.random.random() < 0.15:
            made["template"] = {"metadata": {"labels": {"own": self.text()}}, "spec": {}}
        return {"list": made}

    def directories(self) -> JsonObject:
        desired: list[Json] = [
            {
                "path": self.random.choice(DIRECTORIES),
                "exclude": at > 0 and self.random.random() < 0.5,
            }
            for at in range(self.random.choice([1, 2]))
        ]
        return {"git": self._git({"directories": desired})}

    def files(self) -> JsonObject:
        desired: list[Json] = [
            {"path": self.random.choice(PATTERNS), "exclude": at > 0 and self.random.random() < 0.5}
            for at in range(self.random.choice([1, 2]))
        ]
        return {"git": self._git({"files": desired})}

    def _git(self, more: JsonObject) -> JsonObject:
        made: JsonObject = {"repoURL": URL, "revision": "HEAD", **more}
        if self.random.random() < 0.3:
            made["pathParamPrefix"] = "p"
        if self.random.random() < 0.4:
            made["values"] = {"x": self.text()}
        return made

    def clusters(self) -> JsonObject:
        made: JsonObject = {}
        if self.random.random() < 0.4:
            made["selector"] = {"matchLabels": {"env": self.random.choice(["prod", "none"])}}
        if self.random.random() < 0.4:
            made["values"] = {"x": self.text()}
        return {"clusters": made}

    def matrix(self, depth: int) -> JsonObject:
        many = self.random.choice([2] * 20 + [1, 3])
        entries = [self.entry(depth + 1) for _ in range(many)]
        if many == 2 and self.random.random() < 0.4:
            path = "apps/{{ .name }}" if self.is_go else "apps/{{name}}"
            made = self._git({"directories": [{"path": path}, {"path": "infra/*"}]})
            entries[1] = {"git": {**made, "pathParamPrefix": "p"}}
        return {"matrix": {"generators": [*entries]}}

    def merge(self, depth: int) -> JsonObject:
        many = self.random.choice([2] * 10 + [3] * 5 + [1])
        entries = [self.entry(depth + 1) for _ in range(many)]
        both: list[Json] = ["name", "env"]
        choices: list[list[Json]] = [both, [*both, "path"], [*both, "server"], ["name"], []]
        keys = self.random.choice(choices)
        return {"merge": {"generators": [*entries], "mergeKeys": keys}}
