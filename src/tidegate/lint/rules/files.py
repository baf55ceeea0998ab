"""What stands in files and is not what it seems: entries, numbers, values, owners, secrets."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from tidegate.documents import Document, FieldPath
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.rules.inert import WAVE
from tidegate.lint.scene import Actor, LintScene, SceneFile
from tidegate.lint.words import name, some
from tidegate.model.finding import Severity
from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.plan import Deed
from tidegate.model.reading import listed, mapping, part, text
from tidegate.model.unit import UnitId

OVERLAYS = frozenset({"Kustomization", "Component"})
OWN_GROUPS = ("argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io")
_REMOTE = late(r"://|^git@|^[\w-]+(?:\.[\w-]+)+/|\?ref=|^github\.com")
_SCP = late(r"^[\w.-]+@[\w.-]+:")
PLACEHOLDER = late(
    r"^(?:$|\$\{.*\}|\$\(.*\)|<.*>|\{\{.*\}\}|ENC\[.*|AQ==|x{3,}|\*+|.*(?:change[-_ ]?me|replace"
    r"[-_ ]?me|placeholder|example|dummy|todo|your[-_ ]).*)$",
    re.IGNORECASE | re.DOTALL,
)
HARMLESS = frozenset({"url", "type", "name", "project", "server", "username", "enableOCI"})
"""What Secrets of Argo CD's hold that is none."""


@rule(
    "ORD049",
    "A kustomization names what is not there",
    Severity.ERROR,
    why="kustomize refuses the whole overlay",
    fix="correct the entry, or add the file",
)
def missing_entry(scene: LintScene) -> Iterator[RuleRemark]:
    deployed = _deployed(scene)
    for file in scene.overlays:
        is_idle = (posixpath.dirname(file.name) or ".") not in deployed
        for mark, entry, target in targets_of(file):
            if target in scene.files or target in scene.folders:
                continue
            is_local = str(mark.path[0]).endswith("Generator")
            if target in scene.unshared:
                yield RuleRemark(
                    sentence=f"`{entry}` is here, and Git ignores it",
                    at=mark,
                    severity=Severity.NOTE,
                    why="a controller that reads the repository finds no such file",
                )
                continue
            if is_idle:
                yield RuleRemark(
                    sentence=f"`{entry}` is not there",
                    at=mark,
                    severity=Severity.NOTE,
                    why=f"`{file.name}` names it, which no unit here deploys; a plugin may make it",
                )
                continue
            yield RuleRemark(
                sentence=f"`{entry}` is not there",
                at=mark,
                severity=Severity.WARNING if is_local else Severity.ERROR,
                why=f"`{file.name}` names it, and kustomize refuses the whole overlay",
            )


def _deployed(scene: LintScene) -> set[str]:
    """The directories that units render, and those that overlays among them name."""
    named: dict[str, list[str]] = {}
    for file in scene.overlays:
        folder = posixpath.dirname(file.name) or "."
        named.setdefault(folder, []).extend(target for _, _, target in targets_of(file))
    found: set[str] = set()
    pending = [source.path for unit in scene.units.values() for source in unit.sources]
    while pending:
        folder = posixpath.normpath(pending.pop() or ".")
        if folder not in found:
            found.add(folder)
            pending += named.get(folder, ())
    return found


def targets_of(file: SceneFile) -> Iterator[tuple[Mark, str, str]]:
    """What an overlay names inside of the repository: where, as it stands, and as a path."""
    folder = posixpath.dirname(file.name)
    for document in file.documents:
        if text(document.body, "kind", default="Kustomization") not in OVERLAYS:
            continue
        for path, entry in _entries(document):
            target = posixpath.normpath(posixpath.join(folder, entry))
            if not target.startswith("..") and target != ".":
                yield Mark(document, path), entry, target


def _entries(document: Document) -> Iterator[tuple[FieldPath, str]]:
    """The paths that an overlay names, and that are in this repository."""
    for key in ("resources", "components", "bases", "crds", "configurations", "generators"):
        for at, one in enumerate(listed(document.body, key)):
            yield from _local((key, at), one)
    for at, one in enumerate(listed(document.body, "patches")):
        yield from _local(("patches", at, "path"), part(one, "path"))
    yield from _generated(document)


def _generated(document: Document) -> Iterator[tuple[FieldPath, str]]:
    """The files that settings and Secrets are generated from."""
    for kind in ("configMapGenerator", "secretGenerator"):
        for at, one in enumerate(listed(document.body, kind)):
            for key in ("files", "envs"):
                for number, file in enumerate(listed(one, key)):
                    if isinstance(file, str):
                        yield from _local((kind, at, key, number), file.rpartition("=")[2])


def _local(path: FieldPath, entry: Json) -> Iterator[tuple[FieldPath, str]]:
    is_text = isinstance(entry, str) and "\n" not in entry
    if isinstance(entry, str) and is_text and not _REMOTE.search(entry) and not _SCP.match(entry):
        yield path, entry


@rule(
    "ORD050",
    "A phase is a number in the octal system",
    Severity.ERROR,
    why="without quotes YAML reads a number that begins with 0 as octal: 010 is 8",
    fix="put it in quotes",
)
def octal_phase(scene: LintScene) -> Iterator[RuleRemark]:
    for one in scene.octals:
        yield RuleRemark(
            sentence=f"`{one.key}: {one.text}` reads as {int(one.text, 8)}",
            at=one.where,
            fix=f'write `{one.key}: "{one.text}"`',
        )


@rule(
    "ORD030",
    "Two units write the same object",
    Severity.WARNING,
    why="whoever applies it last wins, and each takes it back from the other; when one prunes it,"
    " the other has lost it",
    fix="remove it from one of the two",
)
def two_owners(scene: LintScene) -> Iterator[RuleRemark]:
    for actors in scene.by_identity.values():
        owners = {one.unit.id: one for one in actors if _is_owned(one)}
        roots = {_root(scene, one) for one in owners}
        if len(owners) < 2 or len(roots) > 1:  # noqa: PLR2004
            continue  # what begins elsewhere may be for another cluster
        first, *others = owners.values()
        refuses = any(one.unit.policy.refuses_shared for one in owners.values())
        is_shared = first.is_a("", "Namespace")
        severity = Severity.ERROR if refuses else Severity.NOTE if is_shared else Severity.WARNING
        yield RuleRemark(
            sentence=f"{name(first.ref)} is written by {some([f'`{one}`' for one in owners])}",
            at=Mark(others[-1].document),
            also=(Mark(first.document),),
            severity=severity,
        )


def _root(scene: LintScene, name: UnitId) -> UnitId:
    """Where the units begin that bring it."""
    seen = {name}
    while (parent := scene.units[name].parent) and parent in scene.units and parent not in seen:
        name = parent
        seen.add(name)
    return name


def _is_owned(actor: Actor) -> bool:
    kind = actor.ref.kind
    is_own = kind.group in OWN_GROUPS
    is_definition = kind.name == "CustomResourceDefinition"
    kept = actor.manifest.deed is Deed.APPLY and actor.manifest.hook is None
    return kept and not is_own and not is_definition


@rule(
    "ORD044",
    "A Secret stands in Git as it is",
    Severity.WARNING,
    why="whoever can read the repository has it, for ever: history keeps it",
    fix="encrypt it with SOPS or Sealed Secrets, or let an operator fetch it; and change it now",
)
def plain_secret(scene: LintScene) -> Iterator[RuleRemark]:
    for actor in scene.of_kind("", "Secret"):
        if actor.identity in scene.hidden or not _is_written(actor, scene):
            continue
        if "argocd.argoproj.io/secret-type" in mapping(actor.body, "metadata", "labels"):
            keys = [one for one in _plain_keys(actor) if one[1] not in HARMLESS]
        else:
            keys = [*_plain_keys(actor)]
        if keys:
            yield RuleRemark(
                sentence=f"{name(actor.ref)} is not encrypted:"
                f" {some([f'`{key}`' for _, key in keys])} can be read",
                at=Mark(actor.document, (keys[0][0], keys[0][1])),
            )


def _is_written(actor: Actor, scene: LintScene) -> bool:
    """Whether the text itself is in Git, and not the template that it came from."""
    file = actor.document.place.name
    return (
        file in scene.files
        and "/templates/" not in f"/{file}"
        and file.endswith((".yaml", ".yml", ".json"))
    )


def _plain_keys(actor: Actor) -> Iterator[tuple[str, str]]:
    if text(actor.body, "type").startswith(("kubernetes.io/service-account-token", "bootstrap.")):
        return
    for place in ("stringData", "data"):
        for key, value in mapping(actor.body, place).items():
            said = _decoded(value) if place == "data" else str(value or "")
            if not PLACEHOLDER.match(said.strip()):
                yield place, key


def _decoded(value: Json) -> str:
    import base64  # noqa: PLC0415 - for Secrets alone
    import binascii  # noqa: PLC0415

    try:
        return base64.b64decode(str(value or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return str(value or "")


@rule(
    "ORD047",
    "Waves in values do not come out",
    Severity.WARNING,
    why="the values of the chart speak of waves, and none of its objects has one",
    fix="look at the templates: the annotation is not written, or switched off",
)
def lost_waves(scene: LintScene) -> Iterator[RuleRemark]:
    charts: dict[str, list[Actor]] = {}
    for one in scene.actors if scene.values else ():
        folder, found, _ = f"/{one.document.place.name}".rpartition("/templates/")
        if found:
            charts.setdefault(folder.removeprefix("/"), []).append(one)
    for file in scene.values:
        actors = charts.get(posixpath.dirname(file.name), [])
        if not actors or any(
            WAVE in mapping(one.body, "metadata", "annotations") for one in actors
        ):
            continue
        yield from _told_waves(file)


def _told_waves(file: SceneFile) -> Iterator[RuleRemark]:
    for document in file.documents:
        for key, value in document.body.items():
            is_wave = re.fullmatch(r"(?i)(?:argo(?:cd)?)?[-_]?sync[-_]?waves?", key) is not None
            switch = part(value, "enabled") if isinstance(value, dict) else None
            if is_wave and value not in ({}, None) and switch is not False:
                yield RuleRemark(
                    sentence=f"`{key}` of `{file.name}` is in no object of the chart",
                    at=Mark(document, (key,)),
                )
