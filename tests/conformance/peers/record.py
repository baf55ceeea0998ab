"""Run the cases on a real Argo CD and keep what it did.

python -m tests.conformance.peers.record               all cases
python -m tests.conformance.peers.record waves prune-last
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from plane import ControlPlane
from plane.binaries.build import say_on_stderr
from plane.binaries.recipe import read_recipe
from tests.conformance.peers.argocd import ArgoCd, Write, argo_cd
from tests.conformance.peers.build import ARGO_CD
from tests.conformance.peers.cases import CASES, Case
from tests.conformance.peers.records import (
    RECORDS,
    RecordedCase,
    RecordedSync,
    RecordedUnit,
    RecordedWrite,
)
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_int, get_text
from tidegate.model.k8s.objects import JsonObject

GIT = ("git", "-c", "user.email=peer@example.org", "-c", "user.name=peer")


def record_cases(cases: Iterable[Case], folder: Path) -> None:
    """Run cases one after another on one control plane, and write a record for each."""
    with ControlPlane.start() as plane, argo_cd(plane, folder) as peer:
        for case in cases:
            begun = time.monotonic()
            record = _record(case, peer, folder / case.name)
            RECORDS.mkdir(parents=True, exist_ok=True)
            text = json.dumps(msgspec.to_builtins(record), indent=1)
            (RECORDS / f"{case.name}.json").write_text(text + "\n")
            say_on_stderr(f"{case.name}: {time.monotonic() - begun:.0f} s")


def _record(case: Case, peer: ArgoCd, root: Path) -> RecordedCase:
    root.mkdir()
    url = f"file://{root}"
    subprocess.run([*GIT, "init", "-q", "-b", "main", str(root)], check=True)
    peer.configure(case.settings)
    peer.apply(*(case.place(body, url) for body in case.given))
    syncs: list[RecordedSync] = []
    for number, files in enumerate((case.files, *case.commits)):
        case.write(root, files, url)
        subprocess.run([*GIT, "-C", str(root), "add", "-A"], check=True)
        subprocess.run(
            [*GIT, "-C", str(root), "commit", "--allow-empty", "-qm", f"{number}"], check=True
        )
        start = datetime.now(UTC)
        if number == 0:
            for path in sorted((root / "apps").iterdir()):
                peer.apply(*(item.body for item in read_documents(path.read_text(), str(path))))
        else:
            peer.refresh()
            time.sleep(2)
        waits = peer.settle(limit=case.limit)
        writes = _from_first(peer.writes(start))
        syncs.append(
            RecordedSync(tuple(writes), tuple(map(_unit, peer.applications())), tuple(waits))
        )
    peer.clear(case.namespace)
    return RecordedCase(
        case=case.name,
        engine=f"argocd {ARGO_CD.version.removeprefix('v')}",
        kubernetes=read_recipe().kubernetes.removeprefix("v"),
        date=datetime.now(UTC).date().isoformat(),
        syncs=tuple(syncs),
    )


def _from_first(writes: list[Write]) -> Iterable[RecordedWrite]:
    """Yield the writes, in seconds after the first one."""
    first = min((write.seconds for write in writes), default=0.0)
    for write in sorted(writes, key=lambda write: write.seconds):
        yield RecordedWrite(
            at=round(write.seconds - first, 1),
            verb=write.verb,
            object=f"{write.resource}/{write.name}",
            code=write.code,
        )


def _unit(body: JsonObject) -> RecordedUnit:
    return RecordedUnit(
        name=get_text(body, "metadata", "name"),
        sync=get_text(body, "status", "sync", "status"),
        health=get_text(body, "status", "health", "status"),
        operation=get_text(body, "status", "operationState", "phase"),
        retries=get_int(body, "status", "operationState", "retryCount"),
        message=get_text(body, "status", "operationState", "message"),
    )


if __name__ == "__main__":
    names = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="peers-") as directory:
        record_cases([case for case in CASES if not names or case.name in names], Path(directory))
