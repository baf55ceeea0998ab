"""Profile of container behavior: durations, failures, and their assumptions.

A `Profile` is a list of rules. Each rule selects some containers and changes some fields of
their ContainerProfile; the last rule that sets a field wins. A profile file extends the default
profile (`profile_file`), and a scenario adds its own rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.model.operators.rows import WILDCARD, KindRow
from tidegate.model.simulation.duration_estimate import DurationEstimate
from tidegate.model.times import SECOND, Duration, Ms

ProfileChanges: TypeAlias = dict[str, object]
"""Fields of a ContainerProfile to change, by name."""


class ContainerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An exit of a container with an error."""

    after: Ms | None = None
    """Time from start to exit; None: when the work would have been done."""
    times: int | None = None
    """Number of attempts that fail, over restarts and over the pods of a Job; None for all."""
    code: int = 1
    """The exit code."""


class ContainerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Durations and failures of a container. Durations are whole seconds, as in a pod's status."""

    pull: Ms = Ms(2 * SECOND)
    """From the binding of the pod until the image is pulled."""
    start: Ms = Ms(SECOND)
    """From the pulled image until the container is running."""
    ready: Ms = Ms(SECOND)
    """From start until the probes succeed."""
    run: Ms = Ms(5 * SECOND)
    """From start to end, for containers of Jobs and others that terminate."""
    init: Ms = Ms(SECOND)
    """From start to end, for init containers."""
    dial: Ms = Ms(SECOND)
    """Time until a call to a Service without ready endpoints fails."""
    poll: Ms = Ms(2 * SECOND)
    """Pause between two calls of a container that waits for a Service."""
    stop: Ms = Ms(SECOND)
    """Time from SIGTERM until the container has ended."""
    dials: bool = False
    """Whether a long-running container exits when a Service it names has no ready endpoints."""
    slow: Ms = Ms(0)
    """Added to `ready`, `run` and `init`."""
    never_ready: bool = False
    """Whether the probes never succeed."""
    flaps: Ms = Ms(0)
    """Period in which the container alternates between ready and not ready; 0 for never."""
    unpullable: bool = False
    """Whether the image cannot be pulled."""
    pullable_after: Ms | None = None
    """Time until the image of an `unpullable` container can be pulled; None for never."""
    unschedulable: str = ""
    """Why no node accepts the pod; empty if one does."""
    failure: ContainerFailure | None = None
    """The failure of the container; None if it does not fail."""
    lines: tuple[str, ...] = ()
    """Log lines that the container prints when it starts."""


class OwnerName(NamedTuple):
    """An owner in the chain from a pod to its top-level object."""

    kind: str
    """The kind of the owner."""
    name: str
    """The name of the owner."""


class ContainerIdentity(NamedTuple):
    """A container, identified by its owners, namespace, name and image."""

    owners: tuple[OwnerName, ...]
    """The chain of owners, which begins with the pod."""
    namespace: str
    """The namespace of the pod."""
    container: str
    """The name of the container."""
    image: str
    """The image of the container."""


class ContainerSelector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A selector of containers. `*` matches any text; an unset field matches all."""

    kind: str | None = None
    """The kind of an owner."""
    namespace: str | None = None
    """The namespace of the pod."""
    name: str | None = None
    """The name of an owner."""
    container: str | None = None
    """The name of the container."""
    image: str | None = None
    """The image of the container."""

    def matches(self, identity: ContainerIdentity) -> bool:
        """Return whether a container is selected."""
        fields = (
            (self.image, identity.image),
            (self.namespace, identity.namespace),
            (self.container, identity.container),
        )
        for pattern, text in fields:
            if pattern is not None and not fnmatchcase(text, pattern):
                return False
        if self.kind is None and self.name is None:
            return True
        return any(
            (self.kind is None or fnmatchcase(owner.kind, self.kind))
            and (self.name is None or fnmatchcase(owner.name, self.name))
            for owner in identity.owners
        )


class ContainerRule(msgspec.Struct, frozen=True):
    """Changes to the profile of some containers."""

    when: ContainerSelector
    """The containers."""
    changes: ProfileChanges
    """The changed fields."""


class StageSelector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A selector of stages of custom resources. `*` matches any text."""

    group: str = WILDCARD
    """The API group."""
    kind: str = WILDCARD
    """The kind."""
    namespace: str = WILDCARD
    """The namespace."""
    name: str = WILDCARD
    """The name of the object."""
    stage: str = WILDCARD
    """The name of the stage."""

    def can_match(self, row: KindRow) -> bool:
        """Return whether an object of a row can match; the generic row (`*`) always can."""
        if row.group == WILDCARD:
            return True
        return fnmatchcase(row.group, self.group) and any(
            fnmatchcase(kind, self.kind) for kind in row.kinds
        )


class StageRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A duration for some stages of operators."""

    after: Duration
    """The duration of the stage."""
    when: StageSelector = StageSelector()
    """The stages."""


class Assumption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement that the simulation relies on without proof from a cluster."""

    name: str
    """The name, which Events and reports use."""
    claim: str
    """The statement."""
    source: str
    """Why the statement is plausible."""


class DurationSpread(msgspec.Struct, frozen=True, kw_only=True):
    """Factors for durations that have no range."""

    optimistic: float = 1
    """The factor of the optimistic estimate."""
    pessimistic: float = 1
    """The factor of the pessimistic estimate."""

    def factor(self, estimate: DurationEstimate) -> float:
        """Return the factor for an estimate."""
        match estimate:
            case DurationEstimate.OPTIMISTIC:
                return self.optimistic
            case DurationEstimate.LIKELY:
                return 1
            case DurationEstimate.PESSIMISTIC:
                return self.pessimistic


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Durations and assumptions of a simulation."""

    name: str = ""
    """The name of the profile."""
    durations: ContainerProfile = ContainerProfile()
    """The general durations."""
    spread: DurationSpread = DurationSpread()
    """Factors for durations without a range."""
    rules: tuple[ContainerRule, ...] = ()
    """Rules for some containers; the last rule that sets a field wins."""
    stages: tuple[StageRule, ...] = ()
    """Durations of operator stages."""
    polls: tuple[str, ...] = ()
    """Regular expressions of commands that wait for a Service."""
    telemetry: tuple[str, ...] = ()
    """Regular expressions of variables and hosts of telemetry, which no container waits for."""
    certifies: tuple[str, ...] = ()
    """Patterns of images and commands that issue certificates and call no host that they name."""
    assumptions: tuple[Assumption, ...] = ()
    """The assumptions of the profile."""

    def with_rules(self, rules: Iterable[ContainerRule]) -> Profile:
        """Return this profile with more rules after its own."""
        return msgspec.structs.replace(self, rules=(*self.rules, *rules))

    def container_profile(self, identity: ContainerIdentity) -> ContainerProfile:
        """Return the profile of a container."""
        changes: ProfileChanges = {}
        for rule in self.rules:
            if rule.when.matches(identity):
                changes |= rule.changes
        return msgspec.structs.replace(self.durations, **changes) if changes else self.durations


class ContainerProfiles:
    """Cached container profiles; pods of one owner share them."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._cache: dict[ContainerIdentity, ContainerProfile] = {}
        self._has_pod_rules = any(
            rule.when.name is not None and fnmatchcase("Pod", rule.when.kind or "*")
            for rule in profile.rules
        )

    def get(self, identity: ContainerIdentity) -> ContainerProfile:
        """Return the profile of a container."""
        if not self._has_pod_rules:
            anonymous_pod = OwnerName(identity.owners[0].kind, "")
            identity = identity._replace(owners=(anonymous_pod, *identity.owners[1:]))
        profile = self._cache.get(identity)
        if profile is None:
            profile = self._cache[identity] = self._profile.container_profile(identity)
        return profile
