"""What a set generates: its template with each set of parameters, as Applications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import msgspec

from tidegate.dialect.argo.sets.asking import (
    Body,
    Errand,
    Fault,
    Known,
    Language,
    Params,
    SetRun,
    inside,
)
from tidegate.dialect.argo.sets.combined import parameters_of
from tidegate.dialect.argo.sets.leftovers import tell_left
from tidegate.dialect.argo.sets.parameters import flattened
from tidegate.dialect.argo.sets.templates import fill
from tidegate.dialect.argo.telling import Telling
from tidegate.dialect.declared import DeclaredSet
from tidegate.documents import FieldPath, read_value
from tidegate.errors import DocumentError, foreign
from tidegate.model.finding import Finding
from tidegate.model.objects import Json
from tidegate.model.paths import walk
from tidegate.model.patterns import late
from tidegate.model.reading import listed, mapping, part, text

FINALIZER = "resources-finalizer.argocd.argoproj.io"
NAME = late(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST_NAME, MOST_TOLD = 253, 2
DERIVED = "Normalized"
WHOLE = "valuesObject"
"""A mapping that is never merged with another."""
TEMPLATE, PATCH = ("spec", "template"), ("spec", "templatePatch")
NAMED: FieldPath = (*TEMPLATE, "metadata", "name")
JOINED = "finalizers"
"""A list that a patch adds to; it replaces all others."""


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """One that was generated: its object, where in the set it comes from, with what parameters."""

    body: Body
    path: FieldPath
    number: int
    params: Params
    named: FieldPath = NAMED
    """Where the template of its name stands."""

    @property
    def name(self) -> str:
        return text(self.body, "metadata", "name")

    @property
    def labels(self) -> Body:
        return mapping(self.body, "metadata", "labels")

    @property
    def spot(self) -> str:
        """The generator, the number of the parameters, and the first of them."""
        flat = (pair for pair in sorted(flattened(self.params)) if not pair[0].endswith(DERIVED))
        few = islice(flat, MOST_TOLD)
        told = ", ".join(f"{foreign(key)}={foreign(one)}" for key, one in few)
        return f"generator {self.path[-1]}, {self.number}: {told}"


class Generated(msgspec.Struct, frozen=True, kw_only=True):
    """The Applications of a set in the order of its generators, and what is to be said of it."""

    applications: tuple[Application, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_whole: bool = True
    """Nothing of it is at fault: what is not here is no longer generated."""


def generate(one: DeclaredSet, known: Known) -> Errand[Generated]:
    """Everything that a set generates; of one that is at fault, nothing, as Argo CD does it."""
    telling, run = Telling(one.where), run_of(one, known)
    made: list[Application] = []
    barren: list[FieldPath] = []
    for at, entry in enumerate(listed(one.body, "spec", "generators")):
        path: FieldPath = ("spec", "generators", at)
        try:
            found = yield from generate_entry(mapping(entry), path, one, run)
        except Fault as fault:
            why = "Argo CD generates nothing of a set that is at fault"
            telling.error(fault.code, fault.path, fault.said, why, fault.fix)
            return Generated(findings=telling.findings, is_whole=False)
        if "clusters" in mapping(entry):
            _tell_clusters(known, (*path, "clusters"), telling)
        if not found:
            barren.append((*path, *_sought(mapping(entry))))
        made += found
    _tell_barren(barren, telling, is_empty=not made)
    if not made:
        said = f"ApplicationSet `{one.namespace}/{one.name}` generates nothing"
        fix = "`--allow-empty` prunes what it generated before"
        telling.note("argo.set-empty", ("spec", "generators"), said, fix=fix)
    sound = tuple(_sound(made, telling))
    tell_left(((one.body, one.params) for one in sound if one.params), telling)
    is_whole = len(sound) == len(made)
    return Generated(applications=sound, findings=telling.findings, is_whole=is_whole)


def _tell_barren(generators: list[FieldPath], telling: Telling, *, is_empty: bool) -> None:
    """Of several ways to name Applications some may be there for those to come."""
    tell = telling.warn if is_empty else telling.note
    said, why = "this generator finds nothing", "no Application comes of it"
    for path in generators:
        tell("argo.set-nothing", path, said, why, "correct its paths, or remove it")


def _sought(entry: Body) -> FieldPath:
    """What of a generator says what it looks for."""
    for kind in ("directories", "files"):
        if listed(entry, "git", kind):
            return ("git", kind)
    return ()


def _tell_clusters(known: Known, path: FieldPath, telling: Telling) -> None:
    if known.asked:
        return
    names = ", ".join(f"`{foreign(one.name)}`" for one in known.clusters)
    said = f"the clusters are those that Git knows: {names}" if names else "Git knows no cluster"
    why = "a running Argo CD may know others; it is not asked"
    fix = "name them, with `server` and `labels`, in `clusters` of tidegate.yaml"
    telling.note("argo.set-clusters", path, said, why, fix)


def run_of(one: DeclaredSet, known: Known) -> SetRun:
    """What its generators share."""
    spec = mapping(one.body, "spec")
    options = tuple(str(option) for option in listed(spec, "goTemplateOptions"))
    return SetRun(known, Language(spec.get("goTemplate") is True, options))


def generate_entry(
    entry: Body, path: FieldPath, one: DeclaredSet, run: SetRun
) -> Errand[list[Application]]:
    """What one entry of `generators` comes to. Raises a Fault."""
    spec, made = mapping(one.body, "spec"), list[Application]()
    patch = text(spec, "templatePatch")
    with inside(*path):
        found = yield from parameters_of(entry, run)
    for kind, params in found:
        own = mapping(entry, kind, "template")
        template = mapping(completed(own, part(spec, "template")))
        named = (*path, kind, *NAMED[1:]) if part(own, "metadata", "name") else NAMED
        with _in_templates(own, (*path, kind, "template")):
            rows = yield from fill([template, patch], params, run.language)
        for mine, (filled, patched) in zip(params, rows, strict=True):
            body = _application(mapping(filled), one, spec if mine else {})
            if patch:
                with inside(*PATCH):
                    body = _with_patch(body, str(patched), one.namespace)
            made.append(
                Application(body=body, path=path, number=len(made) + 1, params=mine, named=named)
            )
    return made


@contextmanager
def _in_templates(own: Body, start: FieldPath) -> Iterator[None]:
    """A Fault in a template: the generator's own, the set's, or the patch of both."""
    try:
        yield
    except Fault as fault:
        number, *rest = fault.path
        template = TEMPLATE if walk(own, rest) is None else start
        fault.path = (*(PATCH if number else template), *rest)
        raise


def completed(own: Json, base: Json) -> Json:
    """A generator's template, and where that says nothing the set's own."""
    if not isinstance(own, dict) or not isinstance(base, dict):
        return own or base
    keys = {**base, **own}
    return {
        key: completed(own.get(key), base.get(key))
        if key != WHOLE
        else own.get(key) or base.get(key)
        for key in keys
    }


def _application(template: Body, one: DeclaredSet, spec: Body) -> Body:
    """The object. What it brought goes with it, unless the set says otherwise."""
    metadata = mapping(template, "metadata")
    keeps = part(spec, "syncPolicy", "preserveResourcesOnDeletion") is True
    finalizers = listed(metadata, JOINED) or ([FINALIZER] if spec and not keeps else [])
    known = {key: metadata[key] for key in ("name", "labels", "annotations") if metadata.get(key)}
    ends: Body = {JOINED: finalizers} if finalizers else {}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {**known, "namespace": one.namespace, **ends},
        "spec": mapping(template, "spec"),
    }


def _with_patch(body: Body, patch: str, namespace: str) -> Body:
    try:
        found = read_value(patch, "templatePatch")
    except DocumentError as error:
        said = f"`templatePatch` comes to what cannot be read: {error.problem}"
        raise Fault("argo.set-patch", said, error.hint) from None
    if not isinstance(found, dict | None):
        raise Fault("argo.set-patch", "`templatePatch` comes to no mapping", "correct it")
    made = mapping(patched(body, found or {}))
    project = part(body, "spec", "project")
    spec = {key: one for key, one in mapping(made, "spec").items() if key != "project"}
    kept: Body = {} if project is None else {"project": project}
    return {
        **made,
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "metadata": {**mapping(made, "metadata"), "namespace": namespace},
        "spec": {**spec, **kept},
    }


def patched(old: Json, new: Json) -> Json:
    """A strategic merge of Kubernetes': of an Application's lists it joins the finalizers alone."""
    if not isinstance(new, dict):
        return new
    if new.get("$patch") == "replace" or not isinstance(old, dict):
        return {key: one for key, one in new.items() if key != "$patch" and one is not None}
    if new.get("$patch") == "delete":
        return {}
    kept = new.get("$retainKeys", [*old])
    made = {key: one for key, one in old.items() if key in listed(kept)}
    for key, one in new.items():
        was = made.pop(key, None)
        if key == JOINED and isinstance(one, list):
            made[key] = _joined(listed(was), one)
        elif one is not None and key != "$retainKeys":
            made[key] = patched(was, one)
    return made


def _joined(old: list[Json], new: list[Json]) -> list[Json]:
    """Each of them once, those that a patch names first."""
    found: list[Json] = []
    for one in (*new, *old):
        found += [] if one in found else [one]
    return found


def _sound(made: list[Application], telling: Telling) -> Iterator[Application]:
    """Those that Argo CD takes. Of several with one name it takes none."""
    counts, told = Counter(one.name for one in made), set[str]()
    for one in made:
        why, fix = "Argo CD leaves it out", "use more parameters in its name"
        if counts[one.name] == 1 and NAME.fullmatch(one.name) and len(one.name) <= LONGEST_NAME:
            yield one
        elif one.name in told:
            continue
        elif not one.name:
            said = f"an Application comes out without a name ({one.spot})"
            telling.error("argo.set-name", one.named, said, why, "write `template.metadata.name`")
        elif counts[one.name] > 1:
            said = f"{counts[one.name]} Applications come out as `{foreign(one.name)}`"
            telling.error("argo.set-twice", one.named, said, "Argo CD takes none of them", fix)
        else:
            said = f"`{foreign(one.name)}` cannot be the name of an object ({one.spot})"
            fix = "use lower-case letters, digits, `-` and `.`, or the function `normalize`"
            telling.error("argo.set-name", one.named, said, "the API server refuses it", fix)
        told.add(one.name)
