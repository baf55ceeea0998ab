"""Mistakes in Applications, ApplicationSets and AppProjects."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mutations.objects import MISSING, misspell, strings_at
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

SPECS = {"Application": ("spec",), "ApplicationSet": ("spec", "template", "spec")}
CREATE_NAMESPACE = "CreateNamespace=true"


def applications(repository: Repository) -> Iterator[tuple[Document, tuple[str, ...]]]:
    """Yield Applications and the templates of ApplicationSets, with the path of their spec."""
    for document in repository.find(*SPECS):
        yield document, SPECS[document.kind]


def misspelled_text(repository: Repository, *path: str) -> Iterator[Change]:
    """Yield a change for each Application that has a text at a path of its spec."""
    for document, spec in applications(repository):
        value = get_mapping(document.body, *spec, *path[:-1]).get(path[-1])
        if isinstance(value, str) and value and not value.endswith("}}"):
            wrong = misspell(value)
            yield repository.set(
                document,
                (*spec, *path),
                wrong,
                wrong,
                document.name,
                place=".".join(path),
            )


@breaking("source.path", "render.path", "appset.no-results", "source.missing")
def misspell_application_path(repository: Repository) -> Iterator[Change]:
    return misspelled_text(repository, "source", "path")


@breaking("argo.project-missing", "argo.project")
def misspell_project(repository: Repository) -> Iterator[Change]:
    projects = {document.name for document in repository.find("AppProject")}
    for document, spec in applications(repository):
        project = str(get_mapping(document.body, *spec).get("project"))
        if project in projects:
            wrong = misspell(project)
            yield repository.set(
                document,
                (*spec, "project"),
                wrong,
                wrong,
                place="project",
            )


@breaking("ORD055", "argo.option")
def misspell_sync_option(repository: Repository) -> Iterator[Change]:
    for document, spec in applications(repository):
        for index, option in enumerate(get_list(document.body, *spec, "syncPolicy", "syncOptions")):
            name, _, value = str(option).partition("=")
            path: Path = (*spec, "syncPolicy", "syncOptions", index)
            wrong = f"{misspell(name)}={value}"
            yield repository.set(
                document,
                path,
                wrong,
                misspell(name),
                document.name,
                place=f"syncOptions[{index}]",
            )


@breaking("preflight.no-namespace", *MISSING)
def do_not_create_namespace(repository: Repository) -> Iterator[Change]:
    namespaces = {document.name for document in repository.find("Namespace")}
    for document, spec in applications(repository):
        options = get_list(document.body, *spec, "syncPolicy", "syncOptions")
        namespace = str(get_mapping(document.body, *spec, "destination").get("namespace", ""))
        shared = [
            other
            for other, path in applications(repository)
            if get_mapping(other.body, *path, "destination").get("namespace") == namespace
        ]
        if CREATE_NAMESPACE in options and namespace not in namespaces and len(shared) == 1:
            kept = [option for option in options if option != CREATE_NAMESPACE]
            path: Path = (*spec, "syncPolicy", "syncOptions")
            yield repository.set(
                document,
                path,
                kept,
                namespace if "{{" not in namespace else document.name,
                place="CreateNamespace",
            )


@breaking("argo.destination", "schema.refused")
def set_two_destinations(repository: Repository) -> Iterator[Change]:
    for document, spec in applications(repository):
        if "server" in get_mapping(document.body, *spec, "destination"):
            path: Path = (*spec, "destination", "name")
            yield repository.set(
                document,
                path,
                "other-cluster",
                document.name,
                place="destination",
            )


@breaking("ORD053")
def add_directory_to_tool(repository: Repository) -> Iterator[Change]:
    for document, spec in applications(repository):
        source = get_mapping(document.body, *spec, "source")
        folder = str(source.get("path", ""))
        names = ("kustomization.yaml", "Chart.yaml")
        if any(f"{folder}/{name}" in repository.files for name in names) and "helm" not in source:
            path: Path = (*spec, "source", "directory")
            yield repository.set(
                document,
                path,
                {"recurse": True},
                document.name,
                folder,
                place="directory",
            )


@breaking("ORD014", "render.duplicate", "render.kustomize.duplicate")
def define_application_twice(repository: Repository) -> Iterator[Change]:
    """Add a file with the same Application, but without automated sync."""
    for document in repository.find("Application"):
        spec = get_mapping(document.body, "spec")
        other = {key: value for key, value in spec.items() if key != "syncPolicy"}
        text = dump({**document.body, "spec": other})
        copy = document.file.replace(".yaml", "-copy.yaml")
        if "resources:" not in repository.files.get(_kustomization_of(document), ""):
            yield Change({copy: text}, document.label, (document.name,))


@breaking("render.helm.value-file", "render.helm.values", "source.path", "render.helm.file")
def misspell_value_file(repository: Repository) -> Iterator[Change]:
    for document, spec in applications(repository):
        sources = [
            ("source",),
            *(("sources", i) for i, _ in enumerate(get_list(document.body, *spec, "sources"))),
        ]
        for source in sources:
            files = _value_files(document.body, (*spec, *source))
            for index, value in enumerate(files):
                if "{{" in value:
                    continue
                wrong = value.replace(".yaml", "x.yaml")
                at: Path = (*spec, *source, "helm", "valueFiles", index)
                yield repository.set(
                    document,
                    at,
                    wrong,
                    wrong.rpartition("/")[2],
                    place=f"valueFiles[{index}]",
                )


@breaking("appset.no-results", "appset.empty")
def misspell_generator_path(repository: Repository) -> Iterator[Change]:
    for document in repository.find("ApplicationSet"):
        for path, value in strings_at(get_mapping(document.body, "spec"), "path"):
            if "directories" in path or "files" in path:
                wrong = f"no-such-{value}"
                yield repository.set(
                    document,
                    ("spec", *path),
                    wrong,
                    document.name,
                    place=".".join(map(str, path)),
                )


@breaking("appset.parameter", "appset.template", "appset.name")
def misspell_parameter(repository: Repository) -> Iterator[Change]:
    for document in repository.find("ApplicationSet"):
        for path, value in strings_at(get_mapping(document.body, "spec", "template"), "name"):
            for parameter in ("cluster", "path.basename", "name", ".env", "env"):
                if f"{parameter}}}}}" in value:
                    wrong = value.replace(f"{parameter}}}}}", f"{misspell(parameter)}}}}}")
                    yield repository.set(
                        document, ("spec", "template", *path), wrong, document.name
                    )
                    break


@breaking("ORD015", "appset.steps", "appset.unmatched")
def misspell_step_value(repository: Repository) -> Iterator[Change]:
    def edit(body: JsonObject) -> None:
        step = get_list(body, "spec", "strategy", "rollingSync", "steps")[0]
        for expression in get_list(step, "matchExpressions"):
            get_mapping(expression)["values"] = ["no-such-value"]

    for document in repository.find("ApplicationSet"):
        if get_list(document.body, "spec", "strategy", "rollingSync", "steps"):
            yield repository.replace(document, edit, document.name, place="steps[0]")


@breaking("argo.project")
def deny_repository(repository: Repository) -> Iterator[Change]:
    path: Path = ("spec", "sourceRepos")
    users = {get_mapping(doc.body, *spec).get("project") for doc, spec in applications(repository)}
    for document in repository.find("AppProject"):
        if document.name in users:
            yield repository.set(
                document,
                path,
                ["https://other.example.com/*"],
                document.name,
                place="sourceRepos",
            )


@breaking("argo.project")
def deny_destination(repository: Repository) -> Iterator[Change]:
    path: Path = ("spec", "destinations")
    users = {get_mapping(doc.body, *spec).get("project") for doc, spec in applications(repository)}
    for document in repository.find("AppProject"):
        if document.name in users:
            denied: list[Json] = [{"server": "*", "namespace": "nowhere"}]
            yield repository.set(
                document,
                path,
                denied,
                document.name,
                place="destinations",
            )


def _value_files(body: JsonObject, path: Path) -> list[str]:
    value: object = body
    for key in (*path, "helm", "valueFiles"):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int):
            value = value[key]
    return [str(item) for item in value] if isinstance(value, list) else []


def _kustomization_of(document: Document) -> str:
    return f"{document.file.rpartition('/')[0]}/kustomization.yaml"
