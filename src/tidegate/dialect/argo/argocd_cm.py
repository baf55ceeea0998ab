"""Settings for all Applications in `argocd-cm`.

Ignored differences, excluded kinds, the delay between waves, self-heal backoff and resource
tracking. Health rules are read in `health`.

Like `GetResourceOverrides` in `util/settings/settings.go` and `IsExcludedResource` in
`util/settings/resources_filter.go` of Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.dialect.argo.ignore_differences import parse_ignore_differences
from tidegate.dialect.argo.render_requests import string_list
from tidegate.documents import read_first_value
from tidegate.errors import DocumentError, Location, sanitize
from tidegate.globs import matches_glob
from tidegate.model.config import ControllerSetting
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms, parse_duration
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.policy import Policy
from tidegate.model.units.semantics import ChildGates

CUSTOMIZATIONS_KEY = "resource.customizations"
IGNORE_DIFFERENCES = "ignoreDifferences"
ALL_KINDS = "*/*"
WAVE_DELAY_KEY, TRACKING_METHOD_KEY = (
    "controller.sync.wave.delay.seconds",
    "application.resourceTrackingMethod",
)
RECONCILIATION_KEY, RECONCILIATION_JITTER_KEY = (
    "timeout.reconciliation",
    "timeout.reconciliation.jitter",
)
SELF_HEAL_TIMEOUT_KEY = "controller.self.heal.timeout.seconds"
SELF_HEAL_BACKOFF_KEY = "controller.self.heal.backoff.timeout.seconds"
SELF_HEAL_BACKOFF_FACTOR_KEY = "controller.self.heal.backoff.factor"
SELF_HEAL_BACKOFF_CAP_KEY = "controller.self.heal.backoff.cap.seconds"
INSTANCE_LABEL_KEY, DEFAULT_INSTANCE_LABEL = (
    "application.instanceLabelKey",
    "app.kubernetes.io/instance",
)
LABEL_METHOD = "label"
METHODS_WITH_LABEL = frozenset({LABEL_METHOD, "annotation+label"})
EXCLUSIONS_KEY, INCLUSIONS_KEY = "resource.exclusions", "resource.inclusions"


class KindFilter(msgspec.Struct, frozen=True):
    """Kinds of some clusters; an empty list matches everything."""

    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()

    def matches(self, group: str, kind: str, server: str) -> bool:
        return (
            (not self.groups or any(matches_glob(pattern, group) for pattern in self.groups))
            and (not self.kinds or bool({"*", kind} & {*self.kinds}))
            and self.applies_to_server(server)
        )

    def applies_to_server(self, server: str) -> bool:
        return not self.clusters or any(matches_glob(pattern, server) for pattern in self.clusters)


CORE_EXCLUSIONS = (
    KindFilter(groups=("events.k8s.io", "metrics.k8s.io")),
    KindFilter(groups=("",), kinds=("Event",)),
    KindFilter(groups=("coordination.k8s.io",), kinds=("Lease",)),
)
"""Kinds that Argo CD always excludes, like `coreExcludedResources` of Argo CD."""


class KindFilters(msgspec.Struct, frozen=True):
    """Excluded and included kinds."""

    excluded: tuple[KindFilter, ...] = CORE_EXCLUSIONS
    included: tuple[KindFilter, ...] = ()
    location: Location | None = None

    def excludes(self, group: str, kind: str, server: str) -> bool:
        if any(kind_filter.matches(group, kind, server) for kind_filter in self.excluded):
            return True
        if any(kind_filter.matches(group, kind, server) for kind_filter in self.included):
            return False
        return any(kind_filter.applies_to_server(server) for kind_filter in self.included)


class ArgoCDConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Parsed `argocd-cm`, with the findings about it."""

    ignore_differences: tuple[IgnoreDifference, ...] = ()
    filters: KindFilters = KindFilters()
    semantics_overrides: Mapping[str, int] = {}
    """Values of fields of `Semantics` that the controller overrides, by field name."""
    instance_label: str = ""
    labels_only: bool = False
    findings: tuple[Finding, ...] = ()


def read_argocd_config(settings: Mapping[str, ControllerSetting]) -> ArgoCDConfig:
    findings: list[Finding] = []
    differences = [
        difference
        for setting in settings.values()
        for difference in _ignore_differences(setting, findings)
    ]
    method_setting = settings.get(TRACKING_METHOD_KEY)
    method = str(method_setting.value) if method_setting is not None else ""
    label_setting = settings.get(INSTANCE_LABEL_KEY)
    label = (
        str(label_setting.value)
        if label_setting and label_setting.value
        else DEFAULT_INSTANCE_LABEL
    )
    filter_setting = settings.get(EXCLUSIONS_KEY) or settings.get(INCLUSIONS_KEY)
    filters = KindFilters(
        excluded=(*CORE_EXCLUSIONS, *_kind_filters(settings.get(EXCLUSIONS_KEY), findings)),
        included=tuple(_kind_filters(settings.get(INCLUSIONS_KEY), findings)),
        location=filter_setting.location if filter_setting else None,
    )
    return ArgoCDConfig(
        ignore_differences=tuple(differences),
        filters=filters,
        semantics_overrides=_semantics_overrides(settings),
        instance_label=label if method in METHODS_WITH_LABEL else "",
        labels_only=method == LABEL_METHOD,
        findings=tuple(findings),
    )


def with_argocd_config(
    policy: Policy, config: ArgoCDConfig, *, gates_children: bool, is_child: bool
) -> Policy:
    """Return the policy of an Application in this Argo CD installation.

    `gates_children`: there is a health rule for Applications, so a parent waits until its
    children are healthy, also those of the last wave.
    """
    semantics = replace(policy.semantics, **config.semantics_overrides)
    if gates_children:
        semantics = replace(semantics, child_gates=ChildGates.ALWAYS)
        semantics = replace(semantics, gates_last=True) if is_child else semantics
    return replace(
        policy,
        semantics=semantics,
        ignore_differences=(*policy.ignore_differences, *config.ignore_differences),
        instance_label=config.instance_label,
        labels_only=config.labels_only,
    )


def _semantics_overrides(settings: Mapping[str, ControllerSetting]) -> dict[str, int]:
    """Return wave delay, self-heal backoff and refresh interval, by field of `Semantics`.

    If the initial self-heal backoff is 0, every attempt has the same delay.
    """
    seconds_keys = {
        "pause": WAVE_DELAY_KEY,
        "heal_backoff": SELF_HEAL_BACKOFF_KEY,
        "heal_backoff_limit": SELF_HEAL_BACKOFF_CAP_KEY,
    }
    seconds = {name: _seconds(settings.get(key)) for name, key in seconds_keys.items()}
    overrides = {name: int(value) for name, value in seconds.items() if value is not None}
    duration_keys = {
        "refresh_interval": RECONCILIATION_KEY,
        "refresh_jitter": RECONCILIATION_JITTER_KEY,
    }
    for name, key in duration_keys.items():
        if (duration := _duration(settings.get(key))) is not None:
            overrides[name] = int(duration)
    factor = settings.get(SELF_HEAL_BACKOFF_FACTOR_KEY)
    if factor is not None and str(factor.value).isdecimal():
        overrides["heal_backoff_factor"] = int(str(factor.value))
    if overrides.get("heal_backoff") == 0:
        delay = int(_seconds(settings.get(SELF_HEAL_TIMEOUT_KEY)) or 0)
        overrides |= {
            "heal_initial_delay": delay,
            "heal_backoff": delay,
            "heal_backoff_limit": delay,
            "heal_backoff_factor": 1,
        }
    return overrides


def _ignore_differences(
    setting: ControllerSetting, findings: list[Finding]
) -> Iterator[IgnoreDifference]:
    """Yield the differences of one key, in the new or in the old format."""
    if setting.name == CUSTOMIZATIONS_KEY:
        for key, entry in get_mapping(_parse_yaml(setting, findings)).items():
            differences = get_mapping(entry).get(IGNORE_DIFFERENCES)
            if isinstance(differences, str):
                yield from _differences_for_key(key, differences, setting, findings)
    elif setting.name.startswith(f"{CUSTOMIZATIONS_KEY}.{IGNORE_DIFFERENCES}."):
        names = setting.name.removeprefix(f"{CUSTOMIZATIONS_KEY}.{IGNORE_DIFFERENCES}.").split("_")
        key = ALL_KINDS if names == ["all"] else "/".join(names)
        yield from _differences_for_key(key, str(setting.value), setting, findings)


def _differences_for_key(
    key: str, value: str, setting: ControllerSetting, findings: list[Finding]
) -> Iterator[IgnoreDifference]:
    group, separator, kind = key.rpartition("/")
    body: JsonObject = get_mapping(
        _parse_yaml(ControllerSetting(setting.name, value, setting.location), findings)
    )
    differences, problems = parse_ignore_differences(
        [{**body, "group": group if separator else "", "kind": kind}]
    )
    for _, error in problems:
        findings.append(_setting_finding(setting, error.problem, error.hint))
    yield from differences


def _kind_filters(
    setting: ControllerSetting | None, findings: list[Finding]
) -> Iterator[KindFilter]:
    if setting is None:
        return
    for entry in get_mappings({"all": _parse_yaml(setting, findings)}, "all"):
        yield KindFilter(
            groups=string_list(entry, "apiGroups"),
            kinds=string_list(entry, "kinds"),
            clusters=string_list(entry, "clusters"),
        )


def _parse_yaml(setting: ControllerSetting, findings: list[Finding]) -> Json:
    try:
        return read_first_value(str(setting.value), setting.location.name)
    except DocumentError as error:
        findings.append(_setting_finding(setting, f"invalid YAML: {error.problem}", ""))
        return None


def _setting_finding(setting: ControllerSetting, problem: str, hint: str) -> Finding:
    return Finding(
        code="argo.setting",
        severity=Severity.WARNING,
        message=f"`{sanitize(setting.name)}` has no effect: {problem}",
        location=setting.location,
        reason="Argo CD logs an error",
        fix=hint,
    )


def _seconds(setting: ControllerSetting | None) -> Ms | None:
    """Parse a number of seconds; None for anything else: the default applies."""
    text = str(setting.value) if setting is not None else ""
    return Ms(int(text) * SECOND) if text.isascii() and text.isdigit() else None


def _duration(setting: ControllerSetting | None) -> Ms | None:
    """Parse a Go duration or a number of seconds; None for anything else: the default applies."""
    seconds = _seconds(setting)
    if setting is None or seconds is not None:
        return seconds
    try:
        return parse_duration(str(setting.value))
    except ValueError:
        return None
