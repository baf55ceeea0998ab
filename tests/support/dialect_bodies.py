"""Custom resources of Argo CD and Flux that any server takes: small, with many fields."""

from __future__ import annotations

from tidegate.documents import read_documents
from tidegate.model.k8s.objects import JsonObject

TEXT = """
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: shop
  namespace: argocd
  finalizers: [resources-finalizer.argocd.argoproj.io]
  annotations: {argocd.argoproj.io/sync-wave: "1"}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
  sources:
  - repoURL: https://example.org/charts
    chart: shop
    targetRevision: 1.2.3
    helm:
      releaseName: shop
      valueFiles: [$values/a.yaml]
      parameters: [{name: image.tag, value: "7", forceString: true}]
      valuesObject: {anything: [1, {may: stand here}]}
      skipCrds: true
  - {repoURL: https://example.org/values, ref: values, path: .}
  source:
    repoURL: https://example.org/shop
    path: overlays/one
    kustomize:
      namePrefix: a-
      images: [web=example.org/web:1]
      commonLabels: {team: a}
      patches: [{target: {kind: Job}, patch: "- op: remove", options: {allowNameChange: true}}]
      replicas: [{name: web, count: 3}, {name: api, count: "2"}]
    directory: {recurse: true, exclude: "*.md", jsonnet: {tlas: [{name: a, value: b, code: true}]}}
    plugin: {name: x, env: [{name: A, value: b}], parameters: [{name: l, array: [a]}]}
  syncPolicy:
    automated: {prune: true, selfHeal: true, allowEmpty: false}
    syncOptions: [CreateNamespace=true]
    managedNamespaceMetadata: {labels: {a: b}}
    retry: {limit: 5, backoff: {duration: 5s, factor: 2, maxDuration: 3m}}
  ignoreDifferences: [{group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}]
  info: [{name: url, value: https://example.org}]
  revisionHistoryLimit: 3
status: {whatever: it says}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shops}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
  - list: {elements: [{cluster: one, deep: {a: 1}}]}
  - clusters: {selector: {matchLabels: {env: prod}}, values: {a: b}}
  - git: {repoURL: https://example.org/a, revision: HEAD, directories: [{path: "*"}]}
  - matrix:
      generators:
      - clusters: {}
      - merge:
          mergeKeys: [server]
          generators: [{clusters: {}}, {list: {elements: [{server: a}]}}]
  - pullRequest: {github: {owner: a, repo: b, labels: [preview]}, requeueAfterSeconds: 60}
  strategy: {type: RollingSync, rollingSync: {steps: [{maxUpdate: 25%}, {maxUpdate: 1}]}}
  syncPolicy: {preserveResourcesOnDeletion: true, applicationsSync: create-only}
  template:
    metadata: {name: "{{.cluster}}", labels: {a: b}}
    spec:
      project: default
      source: {repoURL: https://example.org/a, targetRevision: HEAD, path: "{{.path}}"}
      destination: {name: "{{.cluster}}", namespace: shop}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: team}
spec:
  description: a team
  sourceRepos: ["*"]
  destinations: [{server: "*", namespace: team-*}]
  clusterResourceWhitelist: [{group: "", kind: Namespace}]
  syncWindows: [{kind: allow, schedule: "* * * * *", duration: 1h, applications: ["*"]}]
  roles: [{name: ci, policies: ["p, a, b"], groups: [ci]}]
  orphanedResources: {warn: true}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 10m
  retryInterval: 1m
  timeout: 2m30s
  path: ./apps
  prune: true
  wait: true
  force: false
  suspend: false
  targetNamespace: apps
  sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}
  dependsOn: [{name: infra, namespace: flux-system, readyExpr: "true"}]
  healthChecks: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: apps}]
  healthCheckExprs: [{apiVersion: a/v1, kind: B, current: "true"}]
  postBuild:
    substitute: {a.b: c, color: blue}
    substituteFrom: [{kind: ConfigMap, name: vars, optional: true}]
  patches: [{target: {kind: Deployment}, patch: "- op: remove"}]
  images: [{name: web, newTag: "7"}]
  decryption: {provider: sops, secretRef: {name: age}}
  kubeConfig: {secretRef: {name: remote, key: value}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: apps}
spec:
  interval: 5m
  releaseName: shop
  chart:
    spec:
      chart: shop
      version: ">=1.0.0"
      reconcileStrategy: Revision
      sourceRef: {kind: HelmRepository, name: charts}
  values: {anything: {may: [stand, here]}}
  valuesFrom: [{kind: Secret, name: more, valuesKey: a.yaml, targetPath: b.c, optional: true}]
  dependsOn: [{name: db}]
  install: {crds: CreateReplace, createNamespace: true, remediation: {retries: 3}}
  upgrade: {force: false, cleanupOnFail: true, remediation: {retries: 1, strategy: rollback}}
  driftDetection: {mode: enabled, ignore: [{paths: [/spec/replicas], target: {kind: Deployment}}]}
  test: {enable: true, filters: [{name: a, exclude: true}]}
  postRenderers: [{kustomize: {patches: [{patch: "- op: remove"}]}}]
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system}
spec:
  interval: 1m
  url: ssh://git@example.org/fleet
  ref: {branch: main}
  secretRef: {name: key}
  verify: {mode: HEAD, secretRef: {name: pgp}}
  include: [{repository: {name: other}, fromPath: a, toPath: b}]
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts}
spec: {type: oci, interval: 1h, url: "oci://example.org/charts", provider: generic}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: shop}
spec: {chart: shop, interval: 1m, version: "*", sourceRef: {kind: HelmRepository, name: charts}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: shop}
spec: {interval: 1m, url: "oci://example.org/shop", ref: {semver: "1.x"}, provider: aws}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: shop}
spec: {interval: 1m, provider: generic, bucketName: shop, endpoint: s3.example.org}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: ExternalArtifact
metadata: {name: shop}
spec: {sourceRef: {apiVersion: example.org/v1, kind: Maker, name: a}}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: chat}
spec: {type: slack, channel: general, secretRef: {name: chat}}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: all}
spec:
  providerRef: {name: chat}
  eventSeverity: error
  eventSources: [{kind: HelmRelease, name: "*"}]
---
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata: {name: hook}
spec:
  type: github
  events: [push]
  secretRef: {name: a}
  resources: [{kind: GitRepository, name: b}]
---
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: parts}
spec:
  sources: [{alias: a, kind: GitRepository, name: b}]
  artifacts: [{name: part, copy: [{from: "@a/**", to: "@artifact/", exclude: ["*.md"]}]}]
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: web}
spec: {image: example.org/web, interval: 5m, exclusionList: ["^sha-"]}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: web}
spec: {imageRepositoryRef: {name: web}, policy: {semver: {range: 1.x}}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: web}
spec:
  interval: 5m
  sourceRef: {kind: GitRepository, name: a}
  git: {commit: {author: {email: a@example.org}}, push: {branch: main}}
  update: {path: ./a, strategy: Setters}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1beta2
kind: Kustomization
metadata: {name: apps}
spec:
  {interval: 10m, prune: true, validation: client, sourceRef: {kind: Bucket, name: a}, path: ./a}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1beta1
kind: Kustomization
metadata: {name: apps}
spec: {interval: 10m, prune: true, validation: client, sourceRef: {kind: Bucket, name: a}}
---
apiVersion: helm.toolkit.fluxcd.io/v2beta2
kind: HelmRelease
metadata: {name: shop}
spec: {interval: 5m, chart: {spec: {chart: a, sourceRef: {kind: GitRepository, name: b}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2beta1
kind: HelmRelease
metadata: {name: shop}
spec:
  interval: 5m
  chart: {spec: {chart: a, valuesFile: b, sourceRef: {kind: GitRepository, name: b}}}
---
apiVersion: source.toolkit.fluxcd.io/v1beta2
kind: OCIRepository
metadata: {name: shop}
spec: {interval: 1m, url: "oci://example.org/shop"}
---
apiVersion: source.toolkit.fluxcd.io/v1beta1
kind: GitRepository
metadata: {name: shop}
spec: {interval: 1m, url: "https://example.org/shop", gitImplementation: go-git}
"""

BODIES: tuple[JsonObject, ...] = tuple(
    document.body for document in read_documents(TEXT, "bodies.yaml")
)
