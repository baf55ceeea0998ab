"""Changes that keep the deployment order."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.mutations.objects import WAVE, WORKLOADS
from tests.mutations.operator import harmless
from tests.mutations.repository import Change, Document, Repository, dump, get_list, get_mapping
from tidegate.model.k8s.objects import Json, JsonObject

NOT_FORMATTED = ("kustomization.yaml", "Chart.yaml", "values.yaml")


def yaml_files(repository: Repository) -> Iterator[tuple[str, list[Document]]]:
    """Yield the files with documents, and these documents."""
    for file in dict.fromkeys(document.file for document in repository.documents):
        yield file, [document for document in repository.documents if document.file == file]


@harmless
def format_file(repository: Repository) -> Iterator[Change]:
    for file, documents in yaml_files(repository):
        if "sops" not in documents[0].body:
            yield Change({file: dump(*(document.body for document in documents))}, file)


@harmless
def sort_keys(repository: Repository) -> Iterator[Change]:
    def ordered(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: ordered(value[key]) for key in sorted(value)}
        return [ordered(item) for item in value] if isinstance(value, list) else value

    for file, documents in yaml_files(repository):
        if "sops" not in documents[0].body:
            yield Change({file: dump(*(ordered(document.body) for document in documents))}, file)


@harmless
def reverse_documents(repository: Repository) -> Iterator[Change]:
    for file, documents in yaml_files(repository):
        if len(documents) > 1:
            yield Change({file: dump(*(document.body for document in reversed(documents)))}, file)


@harmless
def add_comments(repository: Repository) -> Iterator[Change]:
    for file, _ in yaml_files(repository):
        text = repository.files[file]
        yield Change(
            {file: f"# Owned by the platform team: see docs/\n{text}# end of file\n"}, file
        )


@harmless
def add_label(repository: Repository) -> Iterator[Change]:
    def label(body: JsonObject) -> None:
        metadata = get_mapping(body, "metadata")
        metadata["labels"] = {**get_mapping(metadata, "labels"), "team": "platform"}

    for document in repository.documents:
        if document.name and "sops" not in document.body:
            yield repository.replace(document, label, place="labels")


@harmless
def add_annotation(repository: Repository) -> Iterator[Change]:
    def annotate(body: JsonObject) -> None:
        metadata = get_mapping(body, "metadata")
        annotations = get_mapping(metadata, "annotations")
        metadata["annotations"] = {**annotations, "example.com/owner": "platform"}

    for document in repository.documents:
        if document.name and "sops" not in document.body:
            yield repository.replace(document, annotate, place="annotations")


@harmless
def reverse_resources(repository: Repository) -> Iterator[Change]:
    """Reverse the list of a kustomization: Argo CD and Flux sort what it renders."""
    for document in repository.find("Kustomization"):
        entries = get_list(document.body, "resources")
        if document.group == "kustomize.config.k8s.io" and len(entries) > 1:
            reverse = [*reversed(entries)]
            yield repository.set(
                document,
                ("resources",),
                reverse,
                place="resources",
            )


@harmless
def renumber_waves(repository: Repository) -> Iterator[Change]:
    """Multiply all waves of the repository by ten."""
    texts: dict[str, str | None] = {}
    for file, documents in yaml_files(repository):
        bodies = [_renumber(document.body) for document in documents]
        if bodies != [document.body for document in documents]:
            texts[file] = dump(*bodies)
    if texts and not any(WAVE in text for file, text in repository.files.items() if "{{" in text):
        yield Change(texts, "all waves")


def _renumber(body: JsonObject) -> JsonObject:
    annotations = get_mapping(body, "metadata", "annotations")
    if WAVE not in annotations:
        return body
    wave = str(int(str(annotations[WAVE])) * 10)
    metadata = {**get_mapping(body, "metadata"), "annotations": {**annotations, WAVE: wave}}
    return {**body, "metadata": metadata}


@harmless
def change_image(repository: Repository) -> Iterator[Change]:
    def change(body: JsonObject) -> None:
        for container in get_list(body, "spec", "template", "spec", "containers"):
            get_mapping(container)["image"] = "registry.example.com/other/image:2.0.1"

    for document in repository.find(*WORKLOADS):
        yield repository.replace(document, change, place="image")


@harmless
def change_replicas(repository: Repository) -> Iterator[Change]:
    for document in repository.find("Deployment", "StatefulSet"):
        yield repository.set(document, ("spec", "replicas"), 3, place="replicas")


@harmless
def add_environment_variable(repository: Repository) -> Iterator[Change]:
    def add(body: JsonObject) -> None:
        for container in get_list(body, "spec", "template", "spec", "containers"):
            variables = get_list(container, "env")
            get_mapping(container)["env"] = [*variables, {"name": "LOG_LEVEL", "value": "debug"}]

    for document in repository.find(*WORKLOADS):
        yield repository.replace(document, add, place="env")


@harmless
def add_unrelated_file(repository: Repository) -> Iterator[Change]:
    folders = dict.fromkeys(document.file.rpartition("/")[0] for document in repository.documents)
    for folder in folders:
        if folder.endswith("templates"):
            continue  # Helm renders each file of this directory
        yield Change(
            {f"{folder}/NOTES.md".lstrip("/"): "# Notes\n\nNothing to deploy here.\n"}, folder
        )


@harmless
def lengthen_interval(repository: Repository) -> Iterator[Change]:
    for document in repository.documents:
        if "interval" in get_mapping(document.body, "spec"):
            yield repository.set(document, ("spec", "interval"), "7m30s", place="interval")


@harmless
def write_json(repository: Repository) -> Iterator[Change]:
    """Write YAML files in flow style, which JSON is a part of."""
    for file, documents in yaml_files(repository):
        if (
            len(documents) == 1
            and not file.endswith(NOT_FORMATTED)
            and "sops" not in documents[0].body
        ):
            yield Change({file: json.dumps(documents[0].body) + "\n"}, file)
