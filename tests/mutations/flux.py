"""Mistakes in Kustomizations, HelmReleases and sources of Flux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.mutations.objects import MISSING, misspell
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

KUSTOMIZE, HELM = "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"


def kustomizations(repository: Repository) -> Iterator[Document]:
    """Yield the Kustomizations of Flux."""
    return (item for item in repository.find("Kustomization") if item.group == KUSTOMIZE)


def units(repository: Repository) -> Iterator[Document]:
    """Yield the Kustomizations and HelmReleases of Flux."""
    return (
        item
        for item in repository.find("Kustomization", "HelmRelease")
        if item.group in {KUSTOMIZE, HELM}
    )


def misspelled_text(
    repository: Repository, documents: Iterator[Document], *path: str
) -> Iterator[Change]:
    """Yield a change for each document that has a text at a path."""
    for document in documents:
        value = get_mapping(document.body, *path[:-1]).get(path[-1])
        if isinstance(value, str) and value.strip("./"):
            wrong = misspell(value)
            yield repository.set(
                document,
                path,
                wrong,
                wrong.strip("./"),
                place=".".join(path),
            )


@breaking("ORD001")
def misspell_dependency(repository: Repository) -> Iterator[Change]:
    for document in units(repository):
        for index, entry in enumerate(get_list(document.body, "spec", "dependsOn")):
            wrong = misspell(str(get_mapping(entry).get("name")))
            path: Path = ("spec", "dependsOn", index, "name")
            yield repository.set(
                document,
                path,
                wrong,
                wrong,
                place=f"dependsOn[{index}]",
            )


@breaking("flux.itself", "ORD002")
def depend_on_itself(repository: Repository) -> Iterator[Change]:
    for document in kustomizations(repository):
        path: Path = ("spec", "dependsOn")
        entry: list[Json] = [{"name": document.name}]
        yield repository.set(
            document,
            path,
            entry,
            document.name,
            place="dependsOn",
        )


@breaking("ORD002", "ORD001")
def depend_in_circle(repository: Repository) -> Iterator[Change]:
    by_name = {document.name: document for document in kustomizations(repository)}
    path: Path = ("spec", "dependsOn")
    for document in kustomizations(repository):
        for entry in get_list(document.body, "spec", "dependsOn"):
            dependency = by_name.get(str(get_mapping(entry).get("name")))
            if dependency is not None and dependency.name != document.name:
                entries: list[Json] = [{"name": document.name}]
                yield repository.set(
                    dependency,
                    path,
                    entries,
                    document.name,
                    place=f"dependsOn, {document.name} depends on it",
                )


@breaking("source.object", "source.undeclared")
def misspell_source(repository: Repository) -> Iterator[Change]:
    sources = {
        document.name
        for document in repository.find(
            "GitRepository", "HelmRepository", "OCIRepository", "Bucket"
        )
    }
    for path in (
        ("spec", "sourceRef", "name"),
        ("spec", "chartRef", "name"),
        ("spec", "chart", "spec", "sourceRef", "name"),
    ):
        for document in units(repository):
            value = str(get_mapping(document.body, *path[:-1]).get("name", ""))
            if value in sources:
                wrong = misspell(value)
                yield repository.set(
                    document,
                    path,
                    wrong,
                    wrong,
                    place=".".join(path),
                )


@breaking("source.path", "render.path")
def misspell_kustomization_path(repository: Repository) -> Iterator[Change]:
    return misspelled_text(repository, kustomizations(repository), "spec", "path")


@breaking("ORD001", "flux.uncheckable")
def misspell_health_check(repository: Repository) -> Iterator[Change]:
    for document in kustomizations(repository):
        for index, entry in enumerate(get_list(document.body, "spec", "healthChecks")):
            wrong = misspell(str(get_mapping(entry).get("name")))
            path: Path = ("spec", "healthChecks", index, "name")
            yield repository.set(
                document,
                path,
                wrong,
                wrong,
                place=f"healthChecks[{index}]",
            )


@breaking("render.data", *MISSING)
def misspell_substitution_source(repository: Repository) -> Iterator[Change]:
    maps = {document.name for document in repository.find("ConfigMap", "Secret")}
    for document in kustomizations(repository):
        for index, entry in enumerate(
            get_list(document.body, "spec", "postBuild", "substituteFrom")
        ):
            name = str(get_mapping(entry).get("name"))
            if name in maps and not get_mapping(entry).get("optional"):
                path: Path = ("spec", "postBuild", "substituteFrom", index, "name")
                yield repository.set(
                    document,
                    path,
                    misspell(name),
                    misspell(name),
                    place=f"substituteFrom[{index}]",
                )


@breaking("ORD045")
def remove_decryption(repository: Repository) -> Iterator[Change]:
    paths = {
        str(get_mapping(document.body, "spec").get("path", "")).strip("./")
        for document in kustomizations(repository)
    }
    for document in kustomizations(repository):
        path = str(get_mapping(document.body, "spec").get("path", "")).strip("./")
        inner = tuple(f"{other}/" for other in paths if other.startswith(f"{path}/"))
        is_encrypted = any(
            file.startswith(f"{path}/") and not file.startswith(inner) and "\nsops:" in text
            for file, text in repository.files.items()
        )
        if get_mapping(document.body, "spec", "decryption") and is_encrypted:
            yield repository.drop(document, ("spec", "decryption"), document.name, ".sops.yaml")


@breaking("ORD016")
def remove_wait(repository: Repository) -> Iterator[Change]:
    """Remove `wait` from a Kustomization that another one depends on."""
    needed = {
        get_mapping(entry).get("name")
        for document in kustomizations(repository)
        for entry in get_list(document.body, "spec", "dependsOn")
    }
    for document in kustomizations(repository):
        spec = get_mapping(document.body, "spec")
        if document.name in needed and spec.get("wait") and not spec.get("healthChecks"):
            yield repository.drop(document, ("spec", "wait"), document.name)


@breaking("ORD018")
def shorten_timeout(repository: Repository) -> Iterator[Change]:
    path: Path = ("spec", "timeout")
    for document in kustomizations(repository):
        folder = str(get_mapping(document.body, "spec").get("path", "")).strip("./")
        slow = any(
            file.startswith(f"{folder}/") and "startupProbe" in text
            for file, text in repository.files.items()
        )
        if slow and get_mapping(document.body, "spec").get("wait"):
            yield repository.set(document, path, "5s", document.name, place="timeout")


@breaking("flux.duration", "schema.refused")
def write_interval_without_unit(repository: Repository) -> Iterator[Change]:
    path: Path = ("spec", "interval")
    for document in units(repository):
        yield repository.set(document, path, "10", document.name, place="interval")


@breaking("units.blocked")
def suspend_dependency(repository: Repository) -> Iterator[Change]:
    path: Path = ("spec", "suspend")
    needed = {
        (document.kind, get_mapping(entry).get("name"))
        for document in units(repository)
        for entry in get_list(document.body, "spec", "dependsOn")
    }
    for document in units(repository):
        if (document.kind, document.name) in needed:
            yield repository.set(
                document,
                path,
                True,
                document.name,
                place="suspend",
            )


@breaking("flux.version", "schema.refused", "ORD062")
def use_removed_flux_version(repository: Repository) -> Iterator[Change]:
    for document in units(repository):
        version = f"{document.group}/v1beta1" if document.group == KUSTOMIZE else f"{HELM}/v2beta1"
        path: Path = ("apiVersion",)
        yield repository.set(
            document,
            path,
            version,
            document.name,
            place="apiVersion",
        )


@breaking("schema.unknown", "schema.refused")
def misspell_unit_field(repository: Repository) -> Iterator[Change]:
    for document in units(repository):
        spec = get_mapping(document.body, "spec")
        for field in ("dependsOn", "interval", "healthChecks", "postBuild"):
            if field in spec:
                wrong = misspell(field)

                def rename(body: JsonObject, field: str = field, wrong: str = wrong) -> None:
                    fields = get_mapping(body, "spec")
                    fields[wrong] = fields.pop(field)

                yield repository.replace(document, rename, wrong, field, place=f"spec.{field}")


@breaking("schema.refused", "flux.required")
def remove_required_field(repository: Repository) -> Iterator[Change]:
    for document in kustomizations(repository):
        for field in ("sourceRef", "interval", "prune"):
            if field in get_mapping(document.body, "spec"):
                yield repository.drop(document, ("spec", field), field)


@breaking("ORD014", "render.duplicate", "render.kustomize.duplicate")
def define_unit_twice(repository: Repository) -> Iterator[Change]:
    for document in kustomizations(repository):
        spec = {**get_mapping(document.body, "spec"), "interval": "59m"}
        folder = document.file.rpartition("/")[0]
        parents = [folder, *(str(parent) for parent in PurePosixPath(folder).parents)]
        # A kustomization.yaml does not include the copy.
        if not any(f"{parent}/kustomization.yaml" in repository.files for parent in parents):
            copy = f"{folder}/copy-of-{document.name}.yaml"
            text = dump({**document.body, "spec": spec})
            yield Change({copy: text}, document.label, (document.name,))


@breaking(*MISSING, "render.data", "source.object", "render.values")
def misspell_values_source(repository: Repository) -> Iterator[Change]:
    maps = {document.name for document in repository.find("ConfigMap", "Secret")}
    for document in repository.find("HelmRelease"):
        for index, entry in enumerate(get_list(document.body, "spec", "valuesFrom")):
            name = str(get_mapping(entry).get("name"))
            if name in maps:
                path: Path = ("spec", "valuesFrom", index, "name")
                yield repository.set(
                    document,
                    path,
                    misspell(name),
                    misspell(name),
                    place=f"valuesFrom[{index}]",
                )


@breaking("ORD001", *MISSING)
def misspell_unit_account(repository: Repository) -> Iterator[Change]:
    accounts = {document.name for document in repository.find("ServiceAccount")}
    for document in units(repository):
        if get_mapping(document.body, "spec").get("serviceAccountName") in accounts:
            yield from misspelled_text(repository, iter([document]), "spec", "serviceAccountName")
