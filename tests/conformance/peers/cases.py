"""Small repositories that a real Argo CD syncs and `tidegate simulate` simulates.

    Case("waves", web(setting("a"), setting("b", wave=1)))

A case has its own namespace, which replaces `shop` in its objects. Annotations say how long pods
take; kwok reads them, and `simulation_inputs` translates them into a profile and a scenario.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plane.parts.stages import PREFIX
from tests.support.repositories import (
    OF_CHILDREN,
    URL,
    application,
    job,
    namespace,
    setting,
)
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject

Files = Mapping[str, tuple[JsonObject, ...] | None]
"""Objects by the file that they are in; None if a commit removes it."""
NOTE = "argocd.argoproj.io/"
PROBE: Json = {"httpGet": {"port": 80}, "periodSeconds": 1}
WAVE, HOOK, POLICY, OPTIONS = (
    f"{NOTE}{name}" for name in ("sync-wave", "hook", "hook-delete-policy", "sync-options")
)


@dataclass(frozen=True, slots=True)
class Case:
    """One repository, and the commits that follow."""

    name: str
    files: Files
    commits: tuple[Files, ...] = ()
    given: tuple[JsonObject, ...] = ()
    """Objects that are there before."""
    settings: JsonObject = field(default_factory=dict)
    """Keys of `argocd-cm`."""
    limit: int = 60
    """Seconds after which the case ends, settled or not."""
    reason: str = ""
    """Why the simulation differs; empty if it must not."""

    @property
    def namespace(self) -> str:
        return f"peer-{self.name}"

    def write(self, root: Path, files: Files, url: str) -> None:
        """Write the files of a commit into the repository."""
        for path, bodies in files.items():
            file = root / path
            if bodies is None:
                file.unlink()
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("---\n".join(to_yaml(self.place(body, url)) for body in bodies))

    def place(self, body: JsonObject, url: str) -> JsonObject:
        """Return an object in the namespace of the case, from the repository at `url`.

        Applications of no two cases have the same name: Argo CD tracks objects by it.
        """
        text = json.dumps(body).replace('"shop"', f'"{self.namespace}"').replace(URL, url)
        text = text.replace("web:", f"{self.name}-web:").replace(":shop/", f":{self.namespace}/")
        placed: JsonObject = json.loads(text)
        if placed["kind"] in {"Application", "ApplicationSet"}:
            _prefix_name(placed, self.name)
            _prefix_name(get_mapping(placed, "spec", "template"), self.name)
        return placed

    @property
    def all_bodies(self) -> Iterator[JsonObject]:
        for files in (self.files, *self.commits):
            for bodies in files.values():
                yield from bodies or ()


def _prefix_name(body: JsonObject, prefix: str) -> None:
    metadata = get_mapping(body, "metadata")
    if metadata:
        body["metadata"] = {**metadata, "name": f"{prefix}-{metadata['name']}"}


def simulation_inputs(case: Case) -> tuple[JsonObject, JsonObject]:
    """Return the profile and the behaviours that correspond to the annotations for kwok."""
    rules: list[Json] = []
    behaviours: list[Json] = []
    for body in case.all_bodies:
        template = get_mapping(body, "spec", "template", "metadata", "annotations")
        when: JsonObject = {"kind": body["kind"], "name": get_text(body, "metadata", "name")}
        for note, duration in (("ready-after", "ready"), ("run-for", "run")):
            if PREFIX + note in template:
                rules.append({"when": when, duration: template[PREFIX + note]})
        match template.get(PREFIX + "outcome"):
            case "fail":
                behaviours.append({"effect": "fails", "when": when})
            case "never":
                behaviours.append({"effect": "never-ready", "when": when})
            case _:
                pass
    durations: Json = dict.fromkeys(("pull", "start", "ready", "run"), "0s")
    return {"name": "kwok", "durations": durations, "rules": rules}, {"behaviours": behaviours}


def noted(body: JsonObject, **notes: str) -> JsonObject:
    """Return an object with annotations of Argo CD: `sync_options="Replace=true"`."""
    metadata = get_mapping(body, "metadata")
    added = {f"{NOTE}{name.replace('_', '-')}": value for name, value in notes.items()}
    annotations: JsonObject = {**get_mapping(metadata, "annotations"), **added}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def with_pods(body: JsonObject, **notes: str) -> JsonObject:
    """Return a workload whose pods behave like this: `ready_after="5s"`, `outcome="fail"`."""
    added: JsonObject = {
        f"{PREFIX}{name.replace('_', '-')}": value for name, value in notes.items()
    }
    spec = get_mapping(body, "spec")
    template = get_mapping(spec, "template")
    metadata: JsonObject = {**get_mapping(template, "metadata"), "annotations": added}
    return {**body, "spec": {**spec, "template": {**template, "metadata": metadata}}}


def server(
    name: str, *, wave: int = 0, ready_after: str = "4s", image: str = "main:1"
) -> JsonObject:
    """A Deployment that becomes ready after a while."""
    labels: Json = {"app": name}
    containers: Json = [{"name": "main", "image": image, "readinessProbe": PROBE}]
    body: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
    return with_pods(noted(body, sync_wave=str(wave)) if wave else body, ready_after=ready_after)


def task(
    name: str, *, hook: str = "", wave: int = 0, image: str = "busybox", **notes: str
) -> JsonObject:
    """A Job, or a hook; `notes` as in `with_pods`."""
    body = job(name, hook=hook, wave=wave)
    containers: Json = [{"name": "main", "image": image}]
    template: Json = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return with_pods({**body, "spec": {"backoffLimit": 0, "template": template}}, **notes)


# Not 0: the controller removes that from an Application, and its parent is OutOfSync.
CHILD_RETRIES = 1


def sync_policy(
    *options: str, retries: int = 0, prune: bool = True, heal: bool = False, duration: str = "3s"
) -> Json:
    """An automated sync policy."""
    automated: Json = {"prune": prune, **({"selfHeal": True} if heal else {})}
    backoff: Json = {"duration": duration, "factor": 2}
    return {
        "automated": automated,
        "syncOptions": ["CreateNamespace=true", *options],
        "retry": {"limit": retries, "backoff": backoff},
    }


def web(*bodies: JsonObject, sync: Json = None, **spec: Json) -> Files:
    """One Application with these objects."""
    unit = application("web", "web", sync=sync_policy() if sync is None else sync)
    fields = {**get_mapping(unit, "spec"), **spec}
    unit["spec"] = {name: value for name, value in fields.items() if value is not None}
    return {"apps/web.yaml": (unit,), "web/all.yaml": bodies}


def objects(*bodies: JsonObject) -> Files:
    """The objects of that Application in a later commit."""
    return {"web/all.yaml": bodies}


def family(*names: str, ready_after: str = "4s", image: str = "main:1") -> Files:
    """A parent Application whose children are in waves, each with a Deployment."""
    files: dict[str, tuple[JsonObject, ...] | None] = {
        "apps/root.yaml": (
            application("root", "children", into="argocd", sync=sync_policy(retries=CHILD_RETRIES)),
        )
    }
    for at, name in enumerate(names):
        child = application(name, name, wave=at, sync=sync_policy(retries=CHILD_RETRIES))
        files[f"children/{name}.yaml"] = (child,)
        files[f"{name}/all.yaml"] = (server(name, ready_after=ready_after, image=image),)
    return files


def family_moved(*names: str) -> Files:
    """A commit that gives each child another path, with another image."""
    files: dict[str, tuple[JsonObject, ...] | None] = {}
    for at, name in enumerate(names):
        child = application(name, f"{name}2", wave=at, sync=sync_policy(retries=CHILD_RETRIES))
        files[f"children/{name}.yaml"] = (child,)
        files[f"{name}2/all.yaml"] = (server(name, image="main:2"),)
    return files


def rolling_set(steps: tuple[tuple[str, str | int | None], ...], **elements: str) -> JsonObject:
    """A set of Applications in RollingSync steps: names by step label."""
    rolling: Json = [
        {
            "matchExpressions": [{"key": "step", "operator": "In", "values": [label]}],
            **({"maxUpdate": most} if most is not None else {}),
        }
        for label, most in steps
    ]
    generated: Json = [{"name": name, "step": step} for name, step in elements.items()]
    template: Json = {
        "metadata": {"name": "{{name}}", "labels": {"step": "{{step}}"}},
        "spec": {
            "project": "default",
            "source": {"repoURL": URL, "path": "{{name}}", "targetRevision": "HEAD"},
            "destination": {"name": "in-cluster", "namespace": "shop"},
            "syncPolicy": sync_policy(retries=CHILD_RETRIES),
        },
    }
    strategy: Json = {"type": "RollingSync", "rollingSync": {"steps": rolling}} if steps else {}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "set", "namespace": "argocd"},
        "spec": {
            "generators": [{"list": {"elements": generated}}],
            "template": template,
            **({"strategy": strategy} if strategy else {}),
        },
    }


def tracked(body: JsonObject) -> JsonObject:
    """An object that Argo CD deployed for `web`."""
    kind, name = get_text(body, "kind"), get_text(body, "metadata", "name")
    placed = {**body, "metadata": {**get_mapping(body, "metadata"), "namespace": "shop"}}
    group = get_text(body, "apiVersion").rpartition("/")[0]
    return noted(placed, tracking_id=f"web:{group}/{kind}:shop/{name}")


def crd(wave: int = 0) -> JsonObject:
    schema: Json = {
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    }
    version: Json = {"name": "v1", "served": True, "storage": True, "schema": schema}
    body: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "peers.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Peer", "plural": "peers"},
            "versions": [version],
        },
    }
    return noted(body, sync_wave=str(wave)) if wave else body


def custom(name: str, wave: int = 0) -> JsonObject:
    body: JsonObject = {
        "apiVersion": "example.org/v1",
        "kind": "Peer",
        "metadata": {"name": name},
        "spec": {},
    }
    return noted(body, sync_wave=str(wave)) if wave else body


def service(name: str) -> JsonObject:
    spec: Json = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def hooks(policy: str, phase: str, outcome: str = "") -> JsonObject:
    notes = {"outcome": outcome} if outcome else {}
    body = with_pods(task(phase.lower(), hook=phase), **notes)
    return noted(body, hook_delete_policy=policy)


CASES = (
    Case("waves", web(setting("a"), setting("b", wave=1), setting("c", wave=2))),
    Case(
        "kinds",
        web(server("app"), service("app"), setting("a"), setting("b"), setting("z", wave=1)),
    ),
    Case("negative", web(setting("early", wave=-2), setting("middle"), setting("last", wave=3))),
    Case("gate", web(server("app", ready_after="6s"), setting("later", wave=1))),
    Case("last", web(setting("a"), server("app", wave=1, ready_after="6s"))),
    Case(
        "phases",
        web(
            task("pre", hook="PreSync", run_for="3s"),
            setting("a"),
            server("app", wave=1),
            task("post", hook="PostSync"),
            task("sos", hook="SyncFail"),
        ),
        limit=90,
    ),
    Case(
        "sync-hook", web(task("now", hook="Sync", run_for="2s"), server("app", ready_after="15s"))
    ),
    Case(
        "hook-waves",
        web(task("one", hook="PreSync", wave=-1), task("two", hook="PreSync"), setting("a")),
    ),
    Case("job-gate", web(task("migrate", run_for="3s"), setting("later", wave=1))),
    Case(
        "failing-presync",
        web(
            task("pre", hook="PreSync", outcome="fail"),
            setting("a"),
            task("sos", hook="SyncFail"),
            sync=sync_policy(retries=2),
        ),
        limit=90,
    ),
    Case(
        "failing-job",
        web(
            task("once", outcome="fail"),
            server("app"),
            setting("z", wave=1),
            task("sos", hook="SyncFail"),
            sync=sync_policy(retries=1),
        ),
        limit=90,
    ),
    Case("failing-postsync", web(setting("a"), task("post", hook="PostSync", outcome="fail"))),
    Case(
        "retries",
        web(
            task("once", outcome="fail"),
            setting("z", wave=1),
            sync=sync_policy(retries=2, duration="2s"),
        ),
        limit=60,
    ),
    Case("hook-succeeded", web(hooks("HookSucceeded", "PreSync"), setting("a"))),
    Case(
        "hook-failed",
        web(
            hooks("HookFailed", "PreSync", outcome="fail"),
            setting("a"),
            sync=sync_policy(retries=1),
        ),
    ),
    Case("hook-failed-passes", web(hooks("HookFailed", "PreSync"), setting("a"))),
    Case(
        "hook-again",
        web(task("pre", hook="PreSync"), setting("a")),
        commits=(objects(task("pre", hook="PreSync"), setting("a", to="2")),),
        limit=90,
    ),
    Case(
        "hook-again-last",
        web(setting("a"), task("post", hook="PostSync")),
        commits=(objects(setting("a", to="2"), task("post", hook="PostSync")),),
        limit=90,
    ),
    Case(
        "hook-keeps",
        web(hooks("HookSucceeded", "Sync"), setting("a")),
        commits=(objects(hooks("HookSucceeded", "Sync"), setting("a", to="2")),),
        limit=90,
    ),
    Case(
        "prune-waves",
        web(
            setting("a"),
            setting("b", wave=2),
            setting("c", wave=4),
            setting("x"),
            setting("z", wave=4),
        ),
        commits=(
            objects(
                setting("a", to="2"), setting("b", wave=2, to="2"), setting("c", wave=4, to="2")
            ),
        ),
        limit=90,
    ),
    Case(
        "prune-only",
        web(setting("a"), setting("w1", wave=1), setting("w2", wave=2), setting("w3", wave=3)),
        commits=(objects(setting("a")),),
        limit=90,
    ),
    Case(
        "prune-last",
        web(
            setting("a"),
            setting("b", wave=2),
            setting("x"),
            setting("y", wave=2),
            sync=sync_policy("PruneLast=true"),
        ),
        commits=(objects(setting("a", to="2"), setting("b", wave=2, to="2")),),
        limit=90,
    ),
    Case(
        "prune-false",
        web(setting("a"), noted(setting("x"), sync_options="Prune=false"), setting("y", wave=1)),
        commits=(objects(setting("a", to="2")),),
        limit=90,
    ),
    Case(
        "no-prune",
        web(setting("a"), setting("x"), sync=sync_policy(prune=False)),
        commits=(objects(setting("a", to="2")),),
        limit=60,
    ),
    Case(
        "changed-job",
        web(
            setting("a"),
            task("once", image="busybox:1"),
            setting("z", wave=1),
            sync=sync_policy(retries=1),
        ),
        commits=(
            objects(
                setting("a", to="2"), task("once", image="busybox:2"), setting("z", wave=1, to="2")
            ),
        ),
        limit=90,
    ),
    Case(
        "replaced-job",
        web(
            noted(task("once", image="busybox:1"), sync_options="Replace=true,Force=true"),
            setting("z", wave=1),
        ),
        commits=(
            objects(
                noted(task("once", image="busybox:2"), sync_options="Replace=true,Force=true"),
                setting("z", wave=1, to="2"),
            ),
        ),
        limit=90,
    ),
    Case(
        "replace",
        web(setting("a"), sync=sync_policy("Replace=true")),
        commits=(objects(setting("a", to="2")),),
        limit=60,
    ),
    Case(
        "server-side",
        web(
            setting("a"),
            server("app"),
            setting("z", wave=1),
            sync=sync_policy("ServerSideApply=true"),
        ),
        limit=60,
    ),
    Case(
        "out-of-sync-only",
        web(
            server("app"),
            setting("a"),
            setting("z", wave=1),
            sync=sync_policy("ApplyOutOfSyncOnly=true"),
        ),
        commits=(objects(server("app"), setting("a"), setting("z", wave=1, to="2")),),
        limit=90,
    ),
    Case(
        "namespace",
        web(
            noted({**namespace("shop")}, sync_wave="5"),
            setting("a", wave=1),
            setting("b"),
            sync={"automated": {}},
        ),
    ),
    Case(
        "no-namespace",
        web(
            setting("a"),
            setting("b", wave=1),
            sync={
                "automated": {},
                "retry": {"limit": 1, "backoff": {"duration": "2s", "factor": 2}},
            },
        ),
        limit=40,
    ),
    Case("crd", web(crd(wave=3), custom("one", wave=1), setting("z", wave=4)), limit=60),
    Case(
        "unchanged",
        web(setting("a"), setting("b", wave=1), sync=sync_policy()),
        commits=(objects(setting("a"), setting("b", wave=1)),),
        limit=40,
    ),
    Case(
        "two-jobs",
        web(task("a", run_for="2s"), task("b", run_for="5s"), setting("z", wave=1)),
    ),
    Case("skip-hook", web(setting("a"), noted(setting("never"), hook="Skip"))),
    Case("pre-and-post", web(noted(task("both"), hook="PreSync,PostSync"), setting("a")), limit=60),
    Case("family", family("first", "second", "third"), limit=60),
    Case("family-gated", family("first", "second", "third"), settings=OF_CHILDREN, limit=90),
    Case(
        "family-commit",
        family("first", "second", "third"),
        commits=(family_moved("first", "second", "third"),),
        settings=OF_CHILDREN,
        limit=150,
    ),
    Case(
        "parent-waves",
        {
            **family("first", "second"),
            "children/own.yaml": (setting("middle", "shop", wave=1), namespace("shop", wave=-1)),
        },
        settings=OF_CHILDREN,
        limit=90,
    ),
    Case(
        "multi-source",
        {
            "more/all.yaml": (setting("b", wave=1), setting("early", wave=-1)),
            **web(
                setting("a"),
                sources=[
                    {"repoURL": URL, "path": "web", "targetRevision": "HEAD"},
                    {"repoURL": URL, "path": "more", "targetRevision": "HEAD"},
                ],
                source=None,
            ),
        },
    ),
    Case(
        "adopts",
        web(setting("a"), setting("b", wave=1)),
        given=(namespace("shop"), tracked(setting("a", to="0")), tracked(setting("old"))),
    ),
    Case(
        "ignored",
        web(
            server("app"),
            setting("z", wave=1),
            ignoreDifferences=[
                {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}
            ],
        ),
    ),
    Case(
        "set",
        {
            "apps/set.yaml": (rolling_set((), one="x", two="x"),),
            "one/all.yaml": (setting("one"),),
            "two/all.yaml": (setting("two"),),
        },
    ),
    Case(
        "set-in-wave",
        {
            "apps/root.yaml": (application("root", "children", into="shop", sync=sync_policy()),),
            "children/set.yaml": (rolling_set((("x", None),), one="x", two="x"),),
            "children/end.yaml": (setting("end", wave=1),),
            "one/all.yaml": (server("one"),),
            "two/all.yaml": (server("two"),),
        },
        limit=90,
    ),
    Case(
        "rolling",
        {
            "apps/set.yaml": (
                rolling_set((("dev", None), ("prod", 1)), a="dev", b="dev", c="prod", d="prod"),
            ),
            **{f"{name}/all.yaml": (server(name),) for name in "abcd"},
        },
        limit=120,
    ),
)
