"""Rules about files: kustomizations, octal numbers, owners, unencrypted Secrets, values."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping

from tidegate.documents import Document
from tidegate.lint.context import LintContext, LintFile, LintObject, OverlayEntry
from tidegate.lint.names import object_name
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.unit_positions import WAVE
from tidegate.model.display import join_limited
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text, get_value
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.plans.plan import ItemAction
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.text.suggest import find_misspelled
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.rendering import ArgoDetails, ArgoPlugin, ToolDetection
from tidegate.model.units.unit import Unit, UnitId

OVERLAY_KINDS = frozenset({"Kustomization", "Component"})
UNIT_GROUPS = ("argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io")
_REMOTE = lazy_regex(r"://|^git@|^[\w-]+(?:\.[\w-]+)+/|\?ref=|^github\.com")
_SCP = lazy_regex(r"^[\w.-]+@[\w.-]+:")
_WAVE_KEY = lazy_regex(r"(?i)(?:argo(?:cd)?)?[-_]?sync[-_]?waves?")
_WAVE = lazy_regex(r"-?[0-9]{1,6}")
PLACEHOLDER = lazy_regex(
    r"^(?:$|\$\{.*\}|\$\(.*\)|<.*>|\{\{.*\}\}|ENC\[.*|AQ==|x{3,}|\*+|.*(?:change[-_ ]?me|replace"
    r"[-_ ]?me|placeholder|example|dummy|todo|your[-_ ]).*)$",
    re.IGNORECASE | re.DOTALL,
)
PUBLIC_KEY_NAME = lazy_regex(
    r"(?:^|[_.-]|(?<=[a-z])(?=[A-Z]))(?i:region|host|hostname|endpoint|level|log_level|insecure|port"
    r"|bucket|domain|tz|timezone|enabled|user|username|path|database|dbname|schema|driver|version"
    r"|provider|name|scopes?|cipher|size|(?:client|tenant|subscription|account|project)[_-]?id)$"
)
"""Names of keys whose values are no secrets."""
PUBLIC_VALUE = lazy_regex(
    r"true|false|\d{1,3}|\d+(?:ms|s|m|h)|https?://[^\s@?]+|sha-?\d+|aes-[a-z0-9-]+|argon2(?:i|id)"
    r"|(?:-----BEGIN (?:CERTIFICATE|PUBLIC KEY)-----[^-]+-----END [A-Z ]+-----\s*)+",
    re.IGNORECASE,
)
"""Switches, numbers, durations, addresses, algorithms, certificates and public keys."""
FILE_KEY = lazy_regex(r"\.(?:properties|ya?ml|json|conf|config|cfg|ini|toml|xml|sql|sh|txt|hcl)$")
"""Names of keys whose values are configuration files, most of which contain no secret."""
CREDENTIAL = lazy_regex(
    r"(?i)-----BEGIN [A-Z ]*PRIVATE KEY-----|://[^\s/:@]+:[^\s/@]+@"
    r"|(?:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key|auth|credential)s?"
    r"[\"']?\s*[:=]\s*[\"']?[^\s\"'{}$<,;]{6,}"
)
"""A credential in a configuration file."""
PUBLIC_KEYS = frozenset({"url", "type", "name", "project", "server", "username", "enableOCI"})
"""Keys of Argo CD Secrets that are not secret."""


@rule(
    "ORD049",
    "Missing file in `kustomization.yaml`",
    Severity.ERROR,
    why="`kustomize build` fails for the whole kustomization",
    fix="correct the entry, or add the file",
)
def missing_overlay_entry(context: LintContext) -> Iterator[Diagnostic]:
    deployed = _deployed_directories(context)
    siblings = _siblings(context) if context.missing_entries else {}
    for entry in context.missing_entries:
        at = FieldRef(entry.document, entry.field)
        if entry.target in context.git_ignored_files:
            yield Diagnostic(
                message=f"`{entry.text}` exists, but Git ignores it",
                at=at,
                severity=Severity.NOTE,
                why="the file is not in the repository that Argo CD or Flux checks out",
            )
            continue
        folder = posixpath.dirname(entry.overlay) or "."
        similar = _similar_sibling(entry, context.overlay_targets[folder], siblings)
        is_undeployed = folder not in deployed
        if is_undeployed and not similar:
            yield Diagnostic(
                message=f"`{entry.text}` does not exist",
                at=at,
                severity=Severity.NOTE,
                why=f"no unit deploys `{entry.overlay}`, so a plugin may generate the file",
            )
            continue
        is_generator = str(entry.field[0]).endswith("Generator")
        yield Diagnostic(
            message=f"`{entry.text}` does not exist",
            at=at,
            severity=Severity.WARNING if is_generator or is_undeployed else Severity.ERROR,
            why=f"`kustomize build` fails for `{entry.overlay}` as a whole",
            fix=f"did you mean `{similar}`?" if similar else "",
        )


def _siblings(context: LintContext) -> dict[str, set[str]]:
    """Return the files and directories in each directory."""
    siblings: dict[str, set[str]] = {}
    for file in context.files:
        path = file
        while path and path not in siblings.setdefault(posixpath.dirname(path), set()):
            siblings[posixpath.dirname(path)].add(path)
            path = posixpath.dirname(path)
    return siblings


def _similar_sibling(
    entry: OverlayEntry, named: Collection[str], siblings: Mapping[str, Collection[str]]
) -> str:
    """Return a file or directory that an entry probably means, and that no other entry names."""
    stem, extension = posixpath.splitext(posixpath.basename(entry.target))
    stems = {
        other_stem: name
        for name in sorted(siblings.get(posixpath.dirname(entry.target), ()))
        for other_stem, other_extension in [posixpath.splitext(posixpath.basename(name))]
        if other_extension == extension and name not in named
    }
    similar = find_misspelled(stem, stems)
    return posixpath.basename(stems[similar]) if similar else ""


def _deployed_directories(context: LintContext) -> set[str]:
    """Return the directories that units render, and the directories that these refer to.

    Where a path has no kustomization, Flux generates one, which includes the next ones below
    (`generateKustomization` in `kustomize_generator.go` of fluxcd/pkg/kustomize 1.35.6).
    """
    directories: set[str] = set()
    generated = {
        posixpath.normpath(source.path or ".")
        for unit in context.units.values()
        if unit.id.kind == "Kustomization"
        for source in unit.sources
    }
    generated -= context.overlay_targets.keys()
    pending = [
        source.path
        for unit in context.units.values()
        for source in unit.sources
        if not isinstance(source.request, ArgoPlugin)  # a plugin may generate files first
    ]
    for overlay in sorted(context.overlay_targets):
        above = next(
            (
                name
                for name in _parents(overlay)
                if name in context.overlay_targets or name in generated
            ),
            None,
        )
        if above in generated:
            pending.append(overlay)
    while pending:
        folder = posixpath.normpath(pending.pop() or ".")
        if folder not in directories:
            directories.add(folder)
            pending += context.overlay_targets.get(folder, ())
    return directories


def _parents(folder: str) -> Iterator[str]:
    """Yield the directories above a directory, the closest first."""
    while folder != ".":
        folder = posixpath.dirname(folder) or "."
        yield folder


def overlay_entries(file: LintFile) -> Iterator[OverlayEntry]:
    """Yield the local paths in a kustomization file."""
    folder = posixpath.dirname(file.name)
    for document in file.documents:
        if get_text(document.body, "kind", default="Kustomization") not in OVERLAY_KINDS:
            continue
        for path, text in _entries(document):
            target = posixpath.normpath(posixpath.join(folder, text))
            if not target.startswith("..") and target != ".":
                yield OverlayEntry(file.name, document, path, text, target)


def _entries(document: Document) -> Iterator[tuple[FieldPath, str]]:
    """Yield the local paths in a kustomization file, with their fields."""
    for key in ("resources", "components", "bases", "crds", "configurations", "generators"):
        for index, entry in enumerate(get_list(document.body, key)):
            yield from _local_path((key, index), entry)
    for index, patch in enumerate(get_list(document.body, "patches")):
        yield from _local_path(("patches", index, "path"), get_value(patch, "path"))
    yield from _generator_files(document)


def _generator_files(document: Document) -> Iterator[tuple[FieldPath, str]]:
    """Yield the files that ConfigMaps and Secrets are generated from."""
    for kind in ("configMapGenerator", "secretGenerator"):
        for at, generator in enumerate(get_list(document.body, kind)):
            for key in ("files", "envs"):
                for number, file in enumerate(get_list(generator, key)):
                    if isinstance(file, str):
                        yield from _local_path((kind, at, key, number), file.rpartition("=")[2])


def _local_path(path: FieldPath, entry: Json) -> Iterator[tuple[FieldPath, str]]:
    is_text = isinstance(entry, str) and "\n" not in entry
    if isinstance(entry, str) and is_text and not _REMOTE.search(entry) and not _SCP.match(entry):
        yield path, entry


@rule(
    "ORD050",
    "Unquoted phase is an octal number",
    Severity.ERROR,
    why="YAML parses an unquoted number with a leading zero as octal: `010` is 8",
    fix="quote the number",
)
def octal_phase(context: LintContext) -> Iterator[Diagnostic]:
    for octal in context.octals:
        yield Diagnostic(
            message=f"`{octal.key}: {octal.text}` is parsed as {int(octal.text, 8)}",
            at=octal.location,
            fix=f'write `{octal.key}: "{octal.text}"`',
        )


@rule(
    "ORD030",
    "Two units manage the same object",
    Severity.ERROR,
    why=(
        "each unit overwrites the changes of the other one; if one unit prunes the object, the"
        " other one loses it"
    ),
    fix="remove the object from one of the units",
)
def two_owners(context: LintContext) -> Iterator[Diagnostic]:
    for objects in context.by_identity.values():
        owners = {
            lint_object.unit.id: lint_object for lint_object in objects if _is_owned(lint_object)
        }
        roots = {_root_unit(context, unit_id) for unit_id in owners}
        if len(owners) < 2 or len(roots) > 1:  # noqa: PLR2004
            continue  # different roots may deploy to different clusters
        first, *others = owners.values()
        is_rejected = any(
            lint_object.unit.policy.fail_on_shared_resource for lint_object in owners.values()
        )
        is_shared = first.is_kind("", "Namespace")
        severity = (
            Severity.ERROR if is_rejected else Severity.NOTE if is_shared else Severity.WARNING
        )
        yield Diagnostic(
            message=(
                f"{object_name(first.ref)} is managed by"
                f" {join_limited([f'`{unit_id}`' for unit_id in owners])}"
            ),
            at=FieldRef(others[-1].document),
            related=(FieldRef(first.document),),
            severity=severity,
            cause=" ".join(sorted(map(str, owners))),
        )


def _root_unit(context: LintContext, unit_id: UnitId) -> UnitId:
    """Return the root unit of a unit."""
    seen = {unit_id}
    while (
        (parent := context.units[unit_id].parent) and parent in context.units and parent not in seen
    ):
        unit_id = parent
        seen.add(unit_id)
    return unit_id


def _is_owned(obj: LintObject) -> bool:
    kind = obj.ref.kind
    is_unit_resource = kind.group in UNIT_GROUPS
    is_definition = kind.name == "CustomResourceDefinition"
    is_applied = obj.manifest.action is ItemAction.APPLY and obj.manifest.hook_policies is None
    is_certain = not obj.unit.is_implicit
    return is_applied and is_certain and not is_unit_resource and not is_definition


@rule(
    "ORD044",
    "Unencrypted Secret in Git",
    Severity.WARNING,
    why="everyone with access to the repository can read the Secret, and Git keeps its history",
    fix=(
        "rotate the values, and encrypt the Secret with SOPS or Sealed Secrets, or use an operator"
        " such as External Secrets"
    ),
)
def plain_secret(context: LintContext) -> Iterator[Diagnostic]:
    for obj in context.objects_of_kind("", "Secret"):
        if obj.identity in context.encrypted_objects or not _is_in_git(obj, context):
            continue
        if "argocd.argoproj.io/secret-type" in get_mapping(obj.body, "metadata", "labels"):
            keys = [entry for entry in _plain_keys(obj) if entry[1] not in PUBLIC_KEYS]
        else:
            keys = [*_plain_keys(obj)]
        if keys:
            yield Diagnostic(
                message=(
                    f"{object_name(obj.ref)} is not encrypted; readable keys:"
                    f" {join_limited([f'`{key}`' for _, key in keys])}"
                ),
                at=FieldRef(obj.document, (keys[0][0], keys[0][1])),
                cause="/".join(obj.document.location.name.split("/")[:2]),
            )


def _is_in_git(obj: LintObject, context: LintContext) -> bool:
    """Return whether the document itself is in Git, not a template of a chart."""
    file = obj.document.location.name
    return (
        file in context.files
        and "/templates/" not in f"/{file}"
        and file.endswith((".yaml", ".yml", ".json"))
    )


def _plain_keys(obj: LintObject) -> Iterator[tuple[str, str]]:
    if get_text(obj.body, "type").startswith(("kubernetes.io/service-account-token", "bootstrap.")):
        return
    for field in ("stringData", "data"):
        for key, value in get_mapping(obj.body, field).items():
            decoded = _decode(value) if field == "data" else str(value or "")
            is_public = (
                PUBLIC_KEY_NAME.search(key)
                or PUBLIC_VALUE.fullmatch(decoded.strip())
                or (FILE_KEY.search(key) and not CREDENTIAL.search(decoded))
            )
            if not is_public and not PLACEHOLDER.match(decoded.strip()):
                yield field, key


def _decode(value: Json) -> str:
    import base64  # noqa: PLC0415 - only for Secrets
    import binascii  # noqa: PLC0415

    try:
        return base64.b64decode(str(value or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return str(value or "")


@rule(
    "ORD047",
    "Sync waves in chart values are not rendered",
    Severity.WARNING,
    why="the values of the chart set sync waves, but no rendered object has one",
    fix="check whether the templates of the chart render the annotation, and whether it is enabled",
)
def unrendered_waves(context: LintContext) -> Iterator[Diagnostic]:
    charts: dict[str, list[LintObject]] = {}
    for lint_object in context.objects if context.value_files else ():
        folder, separator, _ = f"/{lint_object.document.location.name}".rpartition("/templates/")
        if separator:
            charts.setdefault(folder.removeprefix("/"), []).append(lint_object)
    for file in context.value_files:
        objects = charts.get(posixpath.dirname(file.name), [])
        rendered = {
            str(waves[WAVE])
            for lint_object in objects
            if WAVE in (waves := get_mapping(lint_object.body, "metadata", "annotations"))
        }
        if rendered and not any(_has_own_values(lint_object.unit) for lint_object in objects):
            yield from _unrendered_entries(file, rendered)
        elif objects and not rendered:
            yield from _wave_values(file)


def _has_own_values(unit: Unit) -> bool:
    """Return whether a unit may override the values of its chart."""
    for source in unit.sources:
        request, details = source.request, source.details
        chart = request.chart if isinstance(request, ToolDetection) else request
        if isinstance(chart, ChartRequest) and chart.values:
            return True
        if not isinstance(details, ArgoDetails) or details.value_files or details.parameters:
            return details is not None
        if details.values_text or details.file_parameters:
            return True
    return False


def _unrendered_entries(file: LintFile, rendered: set[str]) -> Iterator[Diagnostic]:
    """Yield the waves of single objects that no object has, in a chart that renders others."""
    for document in file.documents:
        for path, wave in _wave_entries(document.body, ()):
            if wave not in rendered:
                name = ".".join(map(str, path))
                yield Diagnostic(
                    message=f"`{name}: {wave}` in `{file.name}` is not rendered: no object of the"
                    " chart is in this wave",
                    at=FieldRef(document, path),
                )


def _wave_entries(values: Json, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """Yield each wave in values, except those of parts that are disabled and wave 0."""
    if not isinstance(values, dict) or values.get("enabled") is False:
        return
    for key, value in values.items():
        if _WAVE_KEY.fullmatch(key) is None:
            yield from _wave_entries(value, (*path, key))
            continue
        entries = value if isinstance(value, dict) else {"": value}
        if entries.get("enabled") is False:
            continue
        for name, entry in entries.items():
            is_number = isinstance(entry, int | str) and not isinstance(entry, bool)
            if is_number and _WAVE.fullmatch(str(entry)) and int(str(entry)):
                yield (*path, key, name) if name else (*path, key), str(entry)


def _wave_values(file: LintFile) -> Iterator[Diagnostic]:
    for document in file.documents:
        for key, value in document.body.items():
            is_wave = _WAVE_KEY.fullmatch(key) is not None
            is_enabled = get_value(value, "enabled") if isinstance(value, dict) else None
            if is_wave and value not in ({}, None) and is_enabled is not False:
                yield Diagnostic(
                    message=f"`{key}` in `{file.name}` is not rendered in any object of the chart",
                    at=FieldRef(document, (key,)),
                )
