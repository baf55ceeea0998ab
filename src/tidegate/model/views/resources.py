"""Objects of a unit with sync status and health."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.k8s.verdict import Verdict


class ResourceRow(msgspec.Struct, frozen=True):
    """An object of an Application, or an object that is owned by one."""

    ref: Ref
    wave: int | None
    verdict: Verdict | None
    is_synced: bool | None = None
    requires_pruning: bool = False
    """Whether the object is no longer in Git."""
    phase: str = ""
    hook: str = ""
    """Hook type; empty if the object is not a hook."""
    hook_result: str = ""
    """Result of the last run of the hook."""
    detail: str = ""
    """Message that replaces the health message."""
    owned: tuple[ResourceRow, ...] = ()

    @property
    def status(self) -> str:
        """Sync status as in the table of Argo CD; for a hook, the result of its run."""
        if self.is_synced is None:
            return self.hook_result
        sync = "Synced" if self.is_synced else "OutOfSync"
        return f"{sync} (requires pruning)" if self.requires_pruning else sync

    @property
    def health(self) -> str:
        return "" if self.verdict is None else str(self.verdict.health)

    @property
    def message(self) -> str:
        return self.detail or ("" if self.verdict is None else self.verdict.message)
