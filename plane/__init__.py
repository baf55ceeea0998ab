"""A real Kubernetes control plane on loopback, for tests and benches.

`python -m plane build` builds its programs once; `ControlPlane` runs them. Nothing in here is
shipped, and nothing in `src` may import it.
"""

from __future__ import annotations

from plane.audit import AuditEntry, read_audit
from plane.cluster import ControlPlane
from plane.errors import PlaneError

__all__ = ["AuditEntry", "ControlPlane", "PlaneError", "read_audit"]
