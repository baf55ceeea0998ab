"""Mistakes in objects of any unit: references, fields, kinds, files and sync waves."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mutations.operator import breaking
from tests.mutations.repository import (
    Change,
    Document,
    Path,
    Repository,
    dump,
    get_list,
    get_mapping,
)
from tidegate.model.k8s.objects import Json, JsonObject

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Job")
MISSING = ("ORD061", "ORD063")
"""Codes of references that lead nowhere."""
INVALID = ("preflight.invalid", "schema.refused", "schema.unknown", "ORD013")
WAVE = "argocd.argoproj.io/sync-wave"
HOOK = "argocd.argoproj.io/hook"


def misspell(name: str) -> str:
    """Return a name with a typo: the last two letters are swapped, or one is added."""
    swapped = name[:-2] + name[-1:] + name[-2:-1]
    return swapped if swapped != name and swapped[-1:].isalnum() else f"{name}x"


def strings_at(body: Json, key: str, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the strings with a key anywhere in a document, with their paths."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name == key and isinstance(value, str):
                yield (*path, name), value
            yield from strings_at(value, key, (*path, name))
    elif isinstance(body, list):
        for index, value in enumerate(body):
            yield from strings_at(value, key, (*path, index))


def pod_references(
    document: Document, parents: tuple[str, ...], key: str
) -> Iterator[tuple[Path, str]]:
    """Yield the references of a workload below some fields, such as `configMapRef`."""
    for path, value in strings_at(get_mapping(document.body, "spec", "template"), key):
        if len(path) > 1 and path[-2] in parents:
            yield ("spec", "template", *path), value


def misspelled_references(
    repository: Repository, parents: tuple[str, ...], key: str, *kinds: str
) -> Iterator[Change]:
    """Yield a change for each reference of a workload to an object of the repository."""
    names = {document.name for document in repository.find(*kinds)}
    for document in repository.find(*WORKLOADS):
        for path, value in pod_references(document, parents, key):
            if not kinds or value in names:
                wrong = misspell(value)
                yield repository.set(
                    document,
                    path,
                    wrong,
                    wrong,
                    place=".".join(map(str, path)),
                )


@breaking(*MISSING)
def misspell_configmap_reference(repository: Repository) -> Iterator[Change]:
    parents = ("configMapRef", "configMapKeyRef", "configMap")
    return misspelled_references(repository, parents, "name", "ConfigMap")


@breaking(*MISSING)
def misspell_secret_reference(repository: Repository) -> Iterator[Change]:
    kinds = ("Secret", "SealedSecret", "ExternalSecret")
    yield from misspelled_references(repository, ("secretRef", "secretKeyRef"), "name", *kinds)
    yield from misspelled_references(repository, ("secret",), "secretName", *kinds)


@breaking(*MISSING)
def misspell_claim_reference(repository: Repository) -> Iterator[Change]:
    parents, kind = ("persistentVolumeClaim",), "PersistentVolumeClaim"
    return misspelled_references(repository, parents, "claimName", kind)


@breaking(*MISSING)
def misspell_key_reference(repository: Repository) -> Iterator[Change]:
    keys = {
        key
        for document in repository.find("ConfigMap", "Secret")
        for field in ("data", "stringData")
        for key in get_mapping(document.body, field)
    }
    for document in repository.find(*WORKLOADS):
        for path, value in pod_references(document, ("configMapKeyRef", "secretKeyRef"), "key"):
            if value in keys:
                wrong = misspell(value)
                yield repository.set(
                    document,
                    path,
                    wrong,
                    wrong,
                    place=".".join(map(str, path)),
                )


@breaking(*MISSING)
def misspell_service_account(repository: Repository) -> Iterator[Change]:
    accounts = {document.name for document in repository.find("ServiceAccount")}
    for document in repository.find(*WORKLOADS):
        for path, value in strings_at(document.body, "serviceAccountName"):
            if value in accounts:
                wrong = misspell(value)
                yield repository.set(
                    document,
                    path,
                    wrong,
                    wrong,
                    place="serviceAccountName",
                )


@breaking(*MISSING)
def misspell_backend_service(repository: Repository) -> Iterator[Change]:
    services = {document.name for document in repository.find("Service")}
    for document in repository.find("Ingress", "HTTPRoute"):
        for path, value in strings_at(get_mapping(document.body, "spec"), "name"):
            if value in services and path[-2] != "hostnames":
                wrong = misspell(value)
                yield repository.set(
                    document,
                    ("spec", *path),
                    wrong,
                    wrong,
                    place="backend",
                )


@breaking(*MISSING)
def change_backend_port(repository: Repository) -> Iterator[Change]:
    services = {document.name for document in repository.find("Service")}

    def change(body: JsonObject) -> None:
        for rule in get_list(body, "spec", "rules"):
            for path in get_list(rule, "http", "paths"):
                get_mapping(path, "backend", "service")["port"] = {"number": 9}
            for backend in get_list(rule, "backendRefs"):
                get_mapping(backend)["port"] = 9

    for document in repository.find("Ingress", "HTTPRoute"):
        backends = {value for _, value in strings_at(document.body, "name")}
        if backends & services:
            names = tuple(backends & services)
            yield repository.replace(document, change, *names, place="backend port")


@breaking(*MISSING)
def misspell_selector(repository: Repository) -> Iterator[Change]:
    """Misspell a label in the selector of a Service."""
    labels = {
        str(value)
        for document in repository.find(*WORKLOADS)
        for value in get_mapping(document.body, "spec", "template", "metadata", "labels").values()
    }
    for document in repository.find("Service"):
        for label, value in get_mapping(document.body, "spec", "selector").items():
            if value in labels:
                wrong = misspell(str(value))
                path: Path = ("spec", "selector", label)
                yield repository.set(document, path, wrong, wrong, document.name)


@breaking(*MISSING)
def move_to_other_namespace(repository: Repository) -> Iterator[Change]:
    """Move a ConfigMap, Secret or account away from the workload that uses it."""
    path: Path = ("metadata", "namespace")
    for document, user in _used_objects(repository):
        if get_mapping(document.body, "metadata").get("namespace"):
            yield repository.set(document, path, "other", document.name, user.name)


@breaking(*MISSING, "ORD049", "render.kustomize.missing", "render.data")
def remove_used_object(repository: Repository) -> Iterator[Change]:
    """Delete a ConfigMap, Secret or account that a workload of the same directory uses."""
    for document, user in _used_objects(repository):
        yield repository.remove(document, document.name, user.name)


def _used_objects(repository: Repository) -> Iterator[tuple[Document, Document]]:
    """Yield objects with a workload of the same directory that cannot start without them."""
    parents = ("configMapRef", "configMapKeyRef", "configMap", "secretRef", "secretKeyRef")
    for document in repository.find("ConfigMap", "Secret", "ServiceAccount"):
        for user in repository.find(*WORKLOADS):
            names = {value for _, value in pod_references(user, parents, "name")}
            names |= {value for _, value in strings_at(user.body, "serviceAccountName")}
            is_near = user.file.rpartition("/")[0] == document.file.rpartition("/")[0]
            if is_near and document.name in names and "sops" not in document.body:
                yield document, user
                break


@breaking("ORD062", "ORD008", "preflight.not-served")
def misspell_kind(repository: Repository) -> Iterator[Change]:
    for document in repository.find(*WORKLOADS, "ConfigMap", "Service", "CronJob", "Ingress"):
        wrong = misspell(document.kind)
        yield repository.set(document, ("kind",), wrong, wrong, place="kind")


@breaking("ORD062", "preflight.not-served")
def use_removed_version(repository: Repository) -> Iterator[Change]:
    removed = {
        "Deployment": "apps/v1beta2",
        "StatefulSet": "apps/v1beta1",
        "CronJob": "batch/v1beta1",
        "Ingress": "extensions/v1beta1",
        "PodDisruptionBudget": "policy/v1beta1",
        "HorizontalPodAutoscaler": "autoscaling/v2beta2",
    }
    for document in repository.find(*removed):
        version = removed[document.kind]
        yield repository.set(
            document,
            ("apiVersion",),
            version,
            document.kind,
            place="apiVersion",
        )


@breaking(*INVALID)
def misspell_field(repository: Repository) -> Iterator[Change]:
    fields = {
        "Deployment": "template",
        "Service": "ports",
        "Job": "template",
        "CronJob": "schedule",
        "Ingress": "rules",
        "StatefulSet": "serviceName",
    }
    for document in repository.find(*fields):
        field = fields[document.kind]
        spec = get_mapping(document.body, "spec")
        if field in spec:
            wrong = misspell(field)

            def rename(body: JsonObject, field: str = field, wrong: str = wrong) -> None:
                spec = get_mapping(body, "spec")
                spec[wrong] = spec.pop(field)

            yield repository.replace(document, rename, wrong, place=f"spec.{field}")


@breaking(*INVALID)
def change_selector(repository: Repository) -> Iterator[Change]:
    for document in repository.find("Deployment", "StatefulSet", "DaemonSet"):
        if get_mapping(document.body, "spec", "selector", "matchLabels"):
            path: Path = ("spec", "selector", "matchLabels")
            yield repository.set(
                document,
                path,
                {"other": "label"},
                document.name,
                place="spec.selector",
            )


@breaking(*INVALID)
def restart_job_always(repository: Repository) -> Iterator[Change]:
    for document in repository.find("Job"):
        path: Path = ("spec", "template", "spec", "restartPolicy")
        yield repository.set(
            document,
            path,
            "Always",
            document.name,
            place="restartPolicy",
        )


@breaking("documents.syntax", "render.kustomize.resource")
def break_syntax(repository: Repository) -> Iterator[Change]:
    for file in dict.fromkeys(
        document.file for document in repository.find("Deployment", "Service")
    ):
        text = repository.files[file].replace("metadata:", "metadata: [", 1)
        yield Change({file: text}, file, (file,))


@breaking("ORD049", "render.kustomize.missing")
def remove_listed_file(repository: Repository) -> Iterator[Change]:
    for document in repository.find("Kustomization"):
        folder = document.file.rpartition("/")[0]
        if document.group == "kustomize.config.k8s.io":
            for entry in get_list(document.body, "resources"):
                if f"{folder}/{entry}" in repository.files:
                    yield Change({f"{folder}/{entry}": None}, f"{folder}/{entry}", (str(entry),))


@breaking("ORD049", "render.kustomize.missing")
def misspell_listed_directory(repository: Repository) -> Iterator[Change]:
    for document in repository.find("Kustomization"):
        if document.group == "kustomize.config.k8s.io":
            for index, entry in enumerate(get_list(document.body, "resources")):
                if not str(entry).endswith((".yaml", ".yml")) and "://" not in str(entry):
                    wrong = misspell(str(entry))
                    path: Path = ("resources", index)
                    yield repository.set(
                        document,
                        path,
                        wrong,
                        wrong,
                        place=f"resources[{index}]",
                    )


@breaking("ORD013", "argo.annotation", "schema.refused", "preflight.invalid")
def unquote_wave(repository: Repository) -> Iterator[Change]:
    """Write waves as numbers. Kustomize writes all annotations as texts, so it repairs them."""
    for document in _with_annotation(repository, WAVE):
        if f"{document.file.rpartition('/')[0]}/kustomization.yaml" in repository.files:
            continue
        value = get_mapping(document.body, "metadata", "annotations")[WAVE]
        path: Path = ("metadata", "annotations", WAVE)
        yield repository.set(
            document,
            path,
            int(str(value)),
            document.name,
            place="sync-wave",
        )


@breaking("ORD013")
def write_wave_as_word(repository: Repository) -> Iterator[Change]:
    for document in _with_annotation(repository, WAVE):
        path: Path = ("metadata", "annotations", WAVE)
        yield repository.set(
            document,
            path,
            "first",
            document.name,
            place="sync-wave",
        )


@breaking("ORD013", "argo.annotation", "ORD052")
def misspell_wave_annotation(repository: Repository) -> Iterator[Change]:
    def rename(body: JsonObject) -> None:
        annotations = get_mapping(body, "metadata", "annotations")
        annotations["argocd.argoproj.io/syncwave"] = annotations.pop(WAVE)

    for document in _with_annotation(repository, WAVE):
        yield repository.replace(document, rename, document.name, place="sync-wave")


@breaking("ORD013")
def move_wave_to_pods(repository: Repository) -> Iterator[Change]:
    def move(body: JsonObject) -> None:
        value = get_mapping(body, "metadata", "annotations").pop(WAVE)
        metadata = get_mapping(body, "spec", "template").setdefault("metadata", {})
        assert isinstance(metadata, dict)
        metadata["annotations"] = {WAVE: value}

    for document in _with_annotation(repository, WAVE):
        if get_mapping(document.body, "spec", "template"):
            yield repository.replace(document, move, document.name, place="sync-wave")


@breaking("argo.hook")
def misspell_hook(repository: Repository) -> Iterator[Change]:
    path: Path = ("metadata", "annotations", HOOK)
    for document in _with_annotation(repository, HOOK):
        wrong = misspell(str(get_mapping(document.body, "metadata", "annotations")[HOOK]))
        yield repository.set(
            document,
            path,
            wrong,
            document.name,
            place="hook",
        )


@breaking("ORD004", "ORD006", "ORD008", "ORD056")
def apply_dependency_after_user(repository: Repository) -> Iterator[Change]:
    """Move a ConfigMap or Secret to a wave after the workload that reads it."""
    producers = {document.name: document for document in repository.find("ConfigMap", "Secret")}
    for document in _with_annotation(repository, WAVE):
        if document.kind not in WORKLOADS:
            continue
        wave = int(str(get_mapping(document.body, "metadata", "annotations")[WAVE]))
        parents = ("configMapRef", "configMapKeyRef", "secretRef", "secretKeyRef")
        for name in {value for _, value in pod_references(document, parents, "name")}:
            producer = producers.get(name)
            if (
                producer is None
                or producer.file.rpartition("/")[0] != document.file.rpartition("/")[0]
            ):
                continue

            def move(body: JsonObject, wave: int = wave) -> None:
                metadata = get_mapping(body, "metadata")
                metadata["annotations"] = {WAVE: str(wave + 1)}

            yield repository.replace(
                producer, move, document.name, place=f"wave, used by {document.name}"
            )


@breaking("preflight.no-namespace", *MISSING)
def remove_namespace(repository: Repository) -> Iterator[Change]:
    for document in repository.find("Namespace"):
        yield repository.remove(document, document.name)


@breaking("ORD014", "render.duplicate", "render.kustomize.duplicate", "ORD030")
def repeat_object(repository: Repository) -> Iterator[Change]:
    for document in repository.find("ConfigMap", "Service"):
        text = dump(*(item.body for item in repository.documents if item.file == document.file))
        yield Change(
            {document.file: f"{text}---\n{dump(document.body)}"}, document.label, (document.name,)
        )


def _with_annotation(repository: Repository, annotation: str) -> Iterator[Document]:
    return (
        document
        for document in repository.documents
        if annotation in get_mapping(document.body, "metadata", "annotations")
    )
