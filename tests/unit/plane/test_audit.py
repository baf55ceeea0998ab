"""Reading the audit log."""

from __future__ import annotations

from pathlib import Path

from plane import read_audit

ENTRY = (
    b'{"kind":"Event","stage":"ResponseComplete","verb":"patch","requestURI":"/api/v1/x",'
    b'"user":{"username":"tidegate","groups":["system:masters"]},'
    b'"objectRef":{"resource":"configmaps","namespace":"shop","name":"web","apiVersion":"v1"},'
    b'"responseStatus":{"code":201},"stageTimestamp":"2026-01-01T00:00:00.000001Z"}\n'
)


def test_an_audit_entry_has_user_verb_and_object(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(ENTRY)

    (entry,) = read_audit(log)

    assert (entry.user.username, entry.verb) == ("tidegate", "patch")
    assert (entry.object_ref.resource, entry.object_ref.name) == ("configmaps", "web")
    assert entry.response_status.code == 201
    assert entry.stage_timestamp == "2026-01-01T00:00:00.000001Z"
    assert entry.request_uri == "/api/v1/x"


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(ENTRY + ENTRY[:40])

    assert len(list(read_audit(log))) == 1
