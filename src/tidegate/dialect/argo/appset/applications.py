"""Applications of an ApplicationSet: its template, filled with each set of parameters.

Like `GenerateApplications` in `applicationset/controllers/template/template.go` and
`validateGeneratedApplications` in `applicationset/controllers/applicationset_controller.go` of Argo
CD 3.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import msgspec

from tidegate.dialect.argo.appset.combined_generators import generate_parameters
from tidegate.dialect.argo.appset.parameters import flatten
from tidegate.dialect.argo.appset.queries import (
    GeneratorContext,
    GeneratorError,
    GeneratorInputs,
    Params,
    Procedure,
    TemplateLanguage,
    prefix_error_path,
)
from tidegate.dialect.argo.appset.simple_generators import IN_CLUSTER_SERVER
from tidegate.dialect.argo.appset.templates import fill_templates
from tidegate.dialect.argo.appset.unresolved import report_unresolved
from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.dialect.declared import ApplicationSet
from tidegate.documents import read_first_value
from tidegate.errors import DocumentError, sanitize
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text, get_value
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
from tidegate.model.k8s.paths import follow_path
from tidegate.model.text.lazy_regex import lazy_regex

FINALIZER = "resources-finalizer.argocd.argoproj.io"
NAME_PATTERN = lazy_regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MAX_NAME_LENGTH, MAX_SHOWN_PARAMS = 253, 2
DERIVED_SUFFIX = "Normalized"
UNMERGED_FIELD = "valuesObject"
"""A mapping that is replaced instead of merged."""
TEMPLATE_PATH, PATCH_PATH = ("spec", "template"), ("spec", "templatePatch")
_CLUSTER_METADATA = lazy_regex(r"metadata\.(?:annotations|labels)\b")
"""A parameter for a label or an annotation of a cluster."""
NAME_PATH: FieldPath = (*TEMPLATE_PATH, "metadata", "name")
FINALIZERS = "finalizers"
CLUSTERS_FIX = "list the clusters, with `server` and `labels`, in `clusters` of tidegate.yaml"
"""The list that a patch appends to; it replaces all other lists."""


class GeneratedApplication(msgspec.Struct, frozen=True, kw_only=True):
    """Generated Application, with its generator and parameters."""

    body: JsonObject
    path: FieldPath
    number: int
    params: Params
    name_path: FieldPath = NAME_PATH
    """Path of the template of its name."""

    @property
    def name(self) -> str:
        return get_text(self.body, "metadata", "name")

    @property
    def labels(self) -> JsonObject:
        return get_mapping(self.body, "metadata", "labels")

    @property
    def origin(self) -> str:
        """The generator, the number of the parameters, and the first ones."""
        flat = (
            pair for pair in sorted(flatten(self.params)) if not pair[0].endswith(DERIVED_SUFFIX)
        )
        first = islice(flat, MAX_SHOWN_PARAMS)
        shown = ", ".join(f"{sanitize(key)}={sanitize(value)}" for key, value in first)
        return f"generator {self.path[-1]}, {self.number}: {shown}"


class GenerationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Applications of an ApplicationSet, in the order of its generators, and the findings."""

    applications: tuple[GeneratedApplication, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_complete: bool = True
    """Whether there was no error, so Applications that are not listed are no longer generated."""


def generate_applications(
    appset: ApplicationSet, inputs: GeneratorInputs
) -> Procedure[GenerationResult]:
    """Generate all Applications of an ApplicationSet; none if it has an error, like Argo CD."""
    collector, context = FindingCollector(appset.location), generator_context(appset, inputs)
    applications: list[GeneratedApplication] = []
    empty_paths: list[FieldPath] = []
    unknown_paths: list[FieldPath] = []
    for index, entry in enumerate(get_list(appset.body, "spec", "generators")):
        path: FieldPath = ("spec", "generators", index)
        try:
            generated = yield from generate_from_entry(get_mapping(entry), path, appset, context)
        except GeneratorError as error:
            why = "Argo CD generates no Applications from an invalid ApplicationSet"
            collector.error(error.code, error.path, error.message, why, error.fix)
            return GenerationResult(findings=collector.findings, is_complete=False)
        if "clusters" in get_mapping(entry):
            _report_clusters_from_git(inputs, (*path, "clusters"), collector)
        if selects_clusters(entry) and not inputs.includes_live_clusters:
            generated = _without_unknown_cluster(generated, appset, inputs)
            unknown_paths += () if generated else (path,)
        elif not generated:
            empty_paths.append((*path, *_search_path(get_mapping(entry))))
        applications += generated
    _report_empty_generators(empty_paths, collector, is_empty=not applications)
    for path in unknown_paths:
        message = "the clusters that the generator selects are unknown"
        why = "Argo CD has clusters as Secrets, and none of those in this repository is selected"
        collector.warn("appset.unknown-clusters", path, message, why, CLUSTERS_FIX)
    if not applications:
        message = f"ApplicationSet `{appset.namespace}/{appset.name}` generates no Applications"
        fix = "prune the Applications that it generated before with `--allow-empty`"
        collector.note("appset.empty", ("spec", "generators"), message, fix=fix)
    valid = tuple(_valid_applications(applications, collector))
    report_unresolved(
        ((application.body, application.params) for application in valid if application.params),
        collector,
    )
    is_complete = len(valid) == len(applications)
    return GenerationResult(
        applications=valid, findings=collector.findings, is_complete=is_complete
    )


def _without_unknown_cluster(
    generated: list[GeneratedApplication], appset: ApplicationSet, inputs: GeneratorInputs
) -> list[GeneratedApplication]:
    """Return the Applications without that of the local cluster, if it lacks what they use.

    The local cluster has labels and annotations only if a Secret of Argo CD registers it, as for
    any other cluster. That Secret is not known.
    """
    is_known = any(cluster.server == IN_CLUSTER_SERVER for cluster in inputs.clusters)
    text = msgspec.json.encode(get_mapping(appset.body, "spec")).decode()
    if is_known or not _CLUSTER_METADATA.search(text):
        return generated
    return [
        application
        for application in generated
        if application.params.get("server") != IN_CLUSTER_SERVER
    ]


def _report_empty_generators(
    paths: list[FieldPath], collector: FindingCollector, *, is_empty: bool
) -> None:
    """Report generators without results; a note only, if other generators have some."""
    report = collector.warn if is_empty else collector.note
    message, why = "the generator returns no results", "it generates no Application"
    for path in paths:
        report("appset.no-results", path, message, why, "correct its paths, or remove it")


def selects_clusters(entry: Json) -> bool:
    """Return whether a generator, at any depth, depends on the clusters registered in Argo CD."""
    generator = get_mapping(entry)
    nested = (
        inner
        for kind in ("matrix", "merge")
        for inner in get_list(get_mapping(generator, kind), "generators")
    )
    return (
        "clusters" in generator
        or "clusterDecisionResource" in generator
        or any(map(selects_clusters, nested))
    )


def _search_path(entry: JsonObject) -> FieldPath:
    """Return the path of the field that selects what a generator finds."""
    for kind in ("directories", "files"):
        if get_list(entry, "git", kind):
            return ("git", kind)
    return ()


def _report_clusters_from_git(
    inputs: GeneratorInputs, path: FieldPath, collector: FindingCollector
) -> None:
    if inputs.includes_live_clusters:
        return
    names = ", ".join(f"`{sanitize(cluster.name)}`" for cluster in inputs.clusters)
    message = (
        f"using the clusters defined in Git: {names}" if names else "no clusters defined in Git"
    )
    why = "a running Argo CD may have other clusters; Tidegate does not query it"
    collector.note("appset.clusters", path, message, why, CLUSTERS_FIX)


def generator_context(appset: ApplicationSet, inputs: GeneratorInputs) -> GeneratorContext:
    """Return the inputs that all generators of an ApplicationSet share."""
    spec = get_mapping(appset.body, "spec")
    options = tuple(str(option) for option in get_list(spec, "goTemplateOptions"))
    return GeneratorContext(inputs, TemplateLanguage(spec.get("goTemplate") is True, options))


def generate_from_entry(
    entry: JsonObject, path: FieldPath, appset: ApplicationSet, context: GeneratorContext
) -> Procedure[list[GeneratedApplication]]:
    """Generate the Applications of one entry of `generators`. Raises a GeneratorError."""
    spec, applications = get_mapping(appset.body, "spec"), list[GeneratedApplication]()
    patch = get_text(spec, "templatePatch")
    with prefix_error_path(*path):
        results = yield from generate_parameters(entry, context)
    for kind, params in results:
        generator_template = get_mapping(entry, kind, "template")
        template = get_mapping(merge_templates(generator_template, get_value(spec, "template")))
        name_path = (
            (*path, kind, *NAME_PATH[1:])
            if get_value(generator_template, "metadata", "name")
            else NAME_PATH
        )
        with _map_template_error(generator_template, (*path, kind, "template")):
            rows = yield from fill_templates([template, patch], params, context.language)
        for param_set, (filled_template, filled_patch) in zip(params, rows, strict=True):
            body = _application_body(
                get_mapping(filled_template), appset, spec if param_set else {}
            )
            if patch:
                with prefix_error_path(*PATCH_PATH):
                    body = _with_patch(body, str(filled_patch), appset.namespace)
            applications.append(
                GeneratedApplication(
                    body=body,
                    path=path,
                    number=len(applications) + 1,
                    params=param_set,
                    name_path=name_path,
                )
            )
    return applications


@contextmanager
def _map_template_error(
    generator_template: JsonObject, generator_path: FieldPath
) -> Iterator[None]:
    """Map the path of a GeneratorError to the template or patch that contains the error."""
    try:
        yield
    except GeneratorError as error:
        body_index, *subpath = error.path
        template_path = (
            TEMPLATE_PATH if follow_path(generator_template, subpath) is None else generator_path
        )
        error.path = (*(PATCH_PATH if body_index else template_path), *subpath)
        raise


def merge_templates(template: Json, base: Json) -> Json:
    """Merge the template of a generator over that of the ApplicationSet."""
    if not isinstance(template, dict) or not isinstance(base, dict):
        return template or base
    keys = {**base, **template}
    return {
        key: (
            merge_templates(template.get(key), base.get(key))
            if key != UNMERGED_FIELD
            else template.get(key) or base.get(key)
        )
        for key in keys
    }


def _application_body(template: JsonObject, appset: ApplicationSet, spec: JsonObject) -> JsonObject:
    """Return the object, with the cascade finalizer unless resources are preserved on deletion."""
    metadata = get_mapping(template, "metadata")
    preserves = get_value(spec, "syncPolicy", "preserveResourcesOnDeletion") is True
    finalizers = get_list(metadata, FINALIZERS) or ([FINALIZER] if spec and not preserves else [])
    copied = {key: metadata[key] for key in ("name", "labels", "annotations") if metadata.get(key)}
    finalizer_field: JsonObject = {FINALIZERS: finalizers} if finalizers else {}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {**copied, "namespace": appset.namespace, **finalizer_field},
        "spec": get_mapping(template, "spec"),
    }


def _with_patch(body: JsonObject, patch: str, namespace: str) -> JsonObject:
    try:
        patch_value = read_first_value(patch, "templatePatch")
    except DocumentError as error:
        message = f"`templatePatch` renders to invalid YAML: {error.problem}"
        raise GeneratorError("appset.patch", message, error.hint) from None
    if not isinstance(patch_value, dict | None):
        raise GeneratorError(
            "appset.patch", "`templatePatch` does not render to a mapping", "correct it"
        )
    merged = get_mapping(strategic_merge(body, patch_value or {}))
    project = get_value(body, "spec", "project")
    spec = {key: value for key, value in get_mapping(merged, "spec").items() if key != "project"}
    fixed: JsonObject = {} if project is None else {"project": project}
    return {
        **merged,
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "metadata": {**get_mapping(merged, "metadata"), "namespace": namespace},
        "spec": {**spec, **fixed},
    }


def strategic_merge(old: Json, new: Json) -> Json:
    """Apply a strategic merge patch; the only list that is merged is `finalizers`."""
    if not isinstance(new, dict):
        return new
    if new.get("$patch") == "replace" or not isinstance(old, dict):
        return {key: value for key, value in new.items() if key != "$patch" and value is not None}
    if new.get("$patch") == "delete":
        return {}
    retained = new.get("$retainKeys", [*old])
    merged = {key: value for key, value in old.items() if key in get_list(retained)}
    for key, value in new.items():
        old_value = merged.pop(key, None)
        if key == FINALIZERS and isinstance(value, list):
            merged[key] = _merge_finalizers(get_list(old_value), value)
        elif value is not None and key != "$retainKeys":
            merged[key] = strategic_merge(old_value, value)
    return merged


def _merge_finalizers(old: list[Json], new: list[Json]) -> list[Json]:
    """Return each finalizer once, those of the patch first."""
    merged: list[Json] = []
    for finalizer in (*new, *old):
        merged += [] if finalizer in merged else [finalizer]
    return merged


def _valid_applications(
    applications: list[GeneratedApplication], collector: FindingCollector
) -> Iterator[GeneratedApplication]:
    """Yield the Applications that Argo CD accepts; none of several with the same name."""
    counts, reported = Counter(application.name for application in applications), set[str]()
    for application in applications:
        why, fix = "Argo CD skips it", "use more parameters in the name"
        if (
            counts[application.name] == 1
            and NAME_PATTERN.fullmatch(application.name)
            and len(application.name) <= MAX_NAME_LENGTH
        ):
            yield application
        elif application.name in reported:
            continue
        elif not application.name:
            message = f"generated Application without a name ({application.origin})"
            collector.error(
                "appset.name",
                application.name_path,
                message,
                why,
                "set `template.metadata.name`",
            )
        elif counts[application.name] > 1:
            message = (
                f"{counts[application.name]} generated Applications are named"
                f" `{sanitize(application.name)}`"
            )
            collector.error(
                "appset.duplicate",
                application.name_path,
                message,
                "Argo CD skips all of them",
                fix,
            )
        else:
            message = (
                f"`{sanitize(application.name)}` is not a valid object name ({application.origin})"
            )
            fix = "use lower-case letters, digits, `-` and `.`, or the function `normalize`"
            collector.error(
                "appset.name", application.name_path, message, "the API server rejects it", fix
            )
        reported.add(application.name)
