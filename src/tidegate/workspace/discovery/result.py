"""What a discovery returns: unit trees, and the findings about them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.health.lua import NO_LUA_RULES, LuaRules
from tidegate.model.config import ControllerSetting
from tidegate.model.finding import Finding
from tidegate.model.units.rendering import NO_ROOT
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.discovery.unit_tree import UnitTree


class DiscoveryResult(msgspec.Struct, frozen=True):
    """The unit trees of a request, with the findings about them."""

    unit_trees: tuple[UnitTree, ...]
    findings: tuple[Finding, ...] = ()
    controller_settings: Mapping[str, ControllerSetting] = msgspec.field(default_factory=dict)
    """Settings of the real controllers, by name."""
    is_repository: bool = False
    """Whether resources define the units, so that flags for a plain unit do not apply."""
    scan: RepositoryScan = msgspec.field(default_factory=lambda: RepositoryScan(NO_ROOT, ()))
    """The scan of the tree that all locations refer to."""
    scripts: LuaRules = NO_LUA_RULES
    """Health rules of the repository."""
    clusters: frozenset[str] = frozenset()
    """Clusters that Argo CD knows from Git, or from the configuration."""
    are_separate: bool = False
    """Whether nothing says that the trees are deployed together."""

    @property
    def are_alternatives(self) -> bool:
        """Whether trees have units in common, so that only one of them can be deployed."""
        if self.are_separate:
            return len(self.unit_trees) > 1
        names = [name for unit_tree in self.unit_trees for name in unit_tree.unit_ids]
        return len(names) != len(set(names))
