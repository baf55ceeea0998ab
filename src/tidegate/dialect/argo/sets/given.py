"""Generators that ask a server elsewhere: what they find, somebody must say.

Of what was given, Argo CD's own parameters are made: short names of commits, names of branches that
Kubernetes takes.
"""

from __future__ import annotations

import re
import unicodedata

from tidegate.dialect.argo.sets.asking import Body, Errand, Fault, Params, SetRun
from tidegate.dialect.argo.sets.parameters import flattened, normalized, printed
from tidegate.dialect.argo.sets.templates import with_values
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, part

GIVEN = ("scmProvider", "pullRequest", "plugin", "clusterDecisionResource")
LONGEST_SLUG = 50


def given_for(kind: str, run: SetRun) -> tuple[Params, ...]:
    """What somebody says that a generator finds. Raises a Fault where nobody does."""
    found = run.known.given.get(kind)
    if found is None:
        said = f"what `{kind}` finds is not known here: it asks a server elsewhere"
        fix = "say what it finds, in a file that `--generator-data` names"
        raise Fault("argo.set-unknown", said, fix)
    return found


def from_scm(body: Body, run: SetRun) -> Errand[list[Params]]:
    found = [_repository(one) for one in given_for("scmProvider", run)]
    return (yield from with_values(found, mapping(body, "values"), run.language))


def _repository(given: Params) -> Params:
    sha, branch, labels = _text(given, "sha"), _text(given, "branch"), given.get("labels")
    texts = {
        key: _text(given, key)
        for key in ("organization", "repository", "repository_id", "url", "branch", "sha")
    }
    joined = ",".join(map(printed, labels)) if isinstance(labels, list) else _text(given, "labels")
    return {
        **texts,
        "short_sha": sha[:8],
        "short_sha_7": sha[:7],
        "labels": joined,
        "branchNormalized": normalized(branch),
    }


def from_pull_requests(body: Body, run: SetRun) -> Errand[list[Params]]:
    found = [_request(one, is_go=run.language.is_go) for one in given_for("pullRequest", run)]
    return (yield from with_values(found, mapping(body, "values"), run.language))


def _request(given: Params, *, is_go: bool) -> Params:
    sha, branch, target = (_text(given, key) for key in ("head_sha", "branch", "target_branch"))
    texts = {
        key: _text(given, key)
        for key in ("number", "title", "branch", "target_branch", "head_sha", "author")
    }
    labels: Params = {"labels": given.get("labels") or []} if is_go else {}
    return {
        **texts,
        "branch_slug": _text(given, "branch_slug") or slug(branch),
        "target_branch_slug": _text(given, "target_branch_slug") or slug(target),
        "head_short_sha": sha[:8],
        "head_short_sha_7": sha[:7],
        **labels,
    }


def from_plugin(body: Body, run: SetRun) -> Errand[list[Params]]:
    asked: Json = {"input": {"parameters": mapping(body, "input", "parameters")}}
    found: list[Params] = [
        {**(one if run.language.is_go else dict[str, Json](flattened(one))), "generator": asked}
        for one in given_for("plugin", run)
    ]
    return (yield from with_values(found, mapping(body, "values"), run.language))


def from_decisions(body: Body, run: SetRun) -> Errand[list[Params]]:
    """One for each decision about a cluster that Argo CD knows; its values are no templates."""
    yield from ()
    servers = {one.name: one.server for one in run.known.clusters}
    values = mapping(body, "values")
    more = (
        {"values": values} if run.language.is_go else {f"values.{k}": v for k, v in values.items()}
    )
    return [
        {
            "server": servers.get(_text(one, "name"), ""),
            **{key: printed(value) for key, value in one.items()},
            **(more if values else {}),
        }
        for one in given_for("clusterDecisionResource", run)
        if _text(one, "name") in servers or part(one, "server")
    ]


def slug(name: str) -> str:
    """A branch as a part of a name; letters lose what Kubernetes does not take."""
    plain = name.strip().replace("_", "-").replace("&", "and").replace("@", "at")
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode().lower()
    made = re.sub("-+", "-", re.sub("[^a-z0-9-]", "-", plain)).strip("-")
    if len(made) <= LONGEST_SLUG:
        return made
    at = made.rfind("-", 0, LONGEST_SLUG + 1)
    return made[:at] if at >= 0 else made[:LONGEST_SLUG]


def _text(given: Params, key: str) -> str:
    value = given.get(key)
    return "" if value is None else printed(value)
