"""What a plan leans on, and neither brings nor finds in its cluster."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.errors import Place
from tidegate.model.objects import Kind, Ref


class Lacking(StrEnum):
    """What sort of thing is absent, in the order in which they are told."""

    OPERATOR = "operator"
    """Nobody makes objects of these kinds well; its name is the operator's, if that is known."""
    KIND = "kind"
    """No CRD defines it; its name is the kind's own."""
    NAMESPACE = "namespace"
    OBJECT = "object"
    """Something of the platform: a class, an issuer, a gateway, a store."""
    SETTING = "setting"
    """Something of the application's own: a Secret, a ConfigMap, an account, a claim.

    So is an object of a kind that the application defines.
    """
    SERVICE = "service"
    """A Service that pods call."""
    PART = "part"
    """What is there lacks a part: a key, a port, pods that answer."""
    ROOT = "trust root"
    """A Secret that somebody brings by hand: a key, a token."""


NEVER_GIVEN = frozenset({Lacking.SETTING, Lacking.SERVICE, Lacking.PART, Lacking.ROOT})
"""What is the repository's own, or somebody's who brings it by hand: it is not assumed."""


class Absence(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """One thing that is absent, once, and all that need it.

    `kinds`: of an operator, those that it would serve. `cluster_wide`: of a kind, its objects are
    taken to be in no namespace. `defined`: of an operator, the plan brings CRDs of its.
    `served`: of a kind, somebody is there who makes its objects well. `strange`: nobody knows when
    its objects are well. `makes`: Secrets that come of those that need it. `part`: what is lacking
    of what is there, in words. `where`: the first place that asks for it.
    """

    cluster: str
    lacking: Lacking
    ref: Ref
    kinds: tuple[Kind, ...] = ()
    cluster_wide: bool = False
    defined: bool = False
    served: bool = False
    strange: bool = False
    needed_by: tuple[Ref, ...] = ()
    makes: tuple[Ref, ...] = ()
    part: str = ""
    where: Place | None = None
