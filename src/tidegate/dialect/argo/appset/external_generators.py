"""Generators that query external services; the user provides their results.

Derived parameters of Argo CD are added: short commit hashes and normalized branch names.

Like `scm_provider.go`, `pull_request.go`, `plugin.go` and `duck_type.go` in
`applicationset/generators` of Argo CD 3.6.
"""

from __future__ import annotations

import re
import unicodedata

from tidegate.dialect.argo.appset.parameters import flatten, go_format, normalize_name
from tidegate.dialect.argo.appset.queries import GeneratorContext, GeneratorError, Params, Procedure
from tidegate.dialect.argo.appset.templates import with_values
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.objects import Json, JsonObject

MAX_SLUG_LENGTH = 50


def provided_params(kind: str, context: GeneratorContext) -> tuple[Params, ...]:
    """Return the provided results of a generator. Raises a GeneratorError if there are none."""
    provided = context.inputs.provided.get(kind)
    if provided is None:
        message = f"the results of `{kind}` are unknown: the generator queries an external service"
        fix = "provide the results in a file with `--generator-data FILE`"
        raise GeneratorError("appset.unknown", message, fix)
    return provided


def from_scm(body: JsonObject, context: GeneratorContext) -> Procedure[list[Params]]:
    params = [_repository_params(provided) for provided in provided_params("scmProvider", context)]
    return (yield from with_values(params, get_mapping(body, "values"), context.language))


def _repository_params(provided: Params) -> Params:
    sha, branch, labels = _text(provided, "sha"), _text(provided, "branch"), provided.get("labels")
    texts = {
        key: _text(provided, key)
        for key in ("organization", "repository", "repository_id", "url", "branch", "sha")
    }
    joined = (
        ",".join(map(go_format, labels)) if isinstance(labels, list) else _text(provided, "labels")
    )
    return {
        **texts,
        "short_sha": sha[:8],
        "short_sha_7": sha[:7],
        "labels": joined,
        "branchNormalized": normalize_name(branch),
    }


def from_pull_requests(body: JsonObject, context: GeneratorContext) -> Procedure[list[Params]]:
    params = [
        _pull_request_params(provided, is_go=context.language.is_go)
        for provided in provided_params("pullRequest", context)
    ]
    return (yield from with_values(params, get_mapping(body, "values"), context.language))


def _pull_request_params(provided: Params, *, is_go: bool) -> Params:
    sha, branch, target = (_text(provided, key) for key in ("head_sha", "branch", "target_branch"))
    texts = {
        key: _text(provided, key)
        for key in ("number", "title", "branch", "target_branch", "head_sha", "author")
    }
    labels: Params = {"labels": provided.get("labels") or []} if is_go else {}
    return {
        **texts,
        "branch_slug": _text(provided, "branch_slug") or slug(branch),
        "target_branch_slug": _text(provided, "target_branch_slug") or slug(target),
        "head_short_sha": sha[:8],
        "head_short_sha_7": sha[:7],
        **labels,
    }


def from_plugin(body: JsonObject, context: GeneratorContext) -> Procedure[list[Params]]:
    plugin_input: Json = {"input": {"parameters": get_mapping(body, "input", "parameters")}}
    params: list[Params] = [
        {
            **(provided if context.language.is_go else dict[str, Json](flatten(provided))),
            "generator": plugin_input,
        }
        for provided in provided_params("plugin", context)
    ]
    return (yield from with_values(params, get_mapping(body, "values"), context.language))


def from_decisions(body: JsonObject, context: GeneratorContext) -> Procedure[list[Params]]:
    """Return the parameters of each decision about a cluster; `values` are not templates."""
    yield from ()
    servers = {cluster.name: cluster.server for cluster in context.inputs.clusters}
    values = get_mapping(body, "values")
    value_params = (
        {"values": values}
        if context.language.is_go
        else {f"values.{k}": v for k, v in values.items()}
    )
    return [
        {
            "server": servers.get(_text(decision, "name"), ""),
            **{key: go_format(value) for key, value in decision.items()},
            **(value_params if values else {}),
        }
        for decision in provided_params("clusterDecisionResource", context)
        if _text(decision, "name") in servers or get_value(decision, "server")
    ]


def slug(name: str) -> str:
    """Return a branch name as part of an object name."""
    ascii_name = name.strip().replace("_", "-").replace("&", "and").replace("@", "at")
    ascii_name = (
        unicodedata.normalize("NFKD", ascii_name).encode("ascii", "ignore").decode().lower()
    )
    result = re.sub("-+", "-", re.sub("[^a-z0-9-]", "-", ascii_name)).strip("-")
    if len(result) <= MAX_SLUG_LENGTH:
        return result
    cut = result.rfind("-", 0, MAX_SLUG_LENGTH + 1)
    return result[:cut] if cut >= 0 else result[:MAX_SLUG_LENGTH]


def _text(provided: Params, key: str) -> str:
    value = provided.get(key)
    return "" if value is None else go_format(value)
