"""Saved plans: written to a file and run later, unchanged or not at all.

The file holds no secret: running it renders again and rejects a difference. The state of live
objects is saved as digests with the user's local key, so that a changed cluster is noticed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tidegate.clusters.session import Session, server_urls
from tidegate.errors import FileError, Location, PlanError, sanitize
from tidegate.files import read_user_file
from tidegate.inspection.diff import (
    LivePreview,
    Preview,
    preview_against_live,
    preview_with_preflight,
)
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import ClusterRef, LiveObject, Ref
from tidegate.model.k8s.secret import is_secret_kind
from tidegate.model.plans.change import DiffAction, Difference
from tidegate.model.plans.plan import Plan, PlanItem, digest_bytes, step_items
from tidegate.plan.serialize import from_json, read_items, to_json
from tidegate.planning.exclusions import apply_suspensions
from tidegate.planning.lookups import LOOKUP_CODE
from tidegate.planning.plan import PreparedRollout
from tidegate.render.cache.local_key import LocalKey
from tidegate.workspace.workspace import Workspace

KIND = "TidegateSavedPlan"
VERSION = 2
MAX_NAMED = 3
NOT_SAVED_FINDING = Finding(
    code="preflight.not-saved",
    severity=Severity.WARNING,
    message="the plan is not saved",
    reason="the plan has errors and cannot be run",
    fix="fix the reported errors",
)
LOOKUP_NOT_SAVED_FINDING = msgspec.structs.replace(
    NOT_SAVED_FINDING,
    reason="a release can only be rendered during the rollout, but a saved plan runs unchanged",
    fix="deploy the objects that the release looks up and save the plan again, or run `sync`",
)
REPLAN_HINT = "review the plan again: `tidegate plan --save FILE`"


class _ObjectState(msgspec.Struct, frozen=True):
    """The action planned for an object, and a keyed digest of its inputs."""

    object_ref: ClusterRef
    fate: DiffAction
    digest: str


class _SavedHeader(msgspec.Struct):
    kind: str = ""
    version: int = 0


class _SavedDocument(msgspec.Struct):
    """Contents of a saved plan file."""

    kind: str
    version: int
    what: str
    """The PATH that the plan was made from."""
    words: tuple[str, ...]
    """Names of the options that the plan was made with."""
    servers: dict[str, str]
    """Server URL by cluster name; empty for a simulated cluster."""
    states: tuple[_ObjectState, ...]
    plan: msgspec.Raw


class SavedPlan:
    """A saved plan that was read and not checked yet."""

    def __init__(self, document: _SavedDocument, name: str) -> None:
        self._document = document
        self._location = Location(name)
        self._key = LocalKey(os.environ).find_or_create()

    @property
    def source(self) -> str:
        return self._document.what

    def check_target(self, session: Session) -> None:
        """Raise PlanError if the plan was made for other clusters."""
        saved_servers, current_servers = self._document.servers, server_urls(session.targets)
        for name in dict.fromkeys((*saved_servers, *current_servers)):
            if saved_servers.get(name) != current_servers.get(name):
                quoted_name = f" `{name}`" if name else ""
                problem = (
                    f"the plan was saved for {_server_name(saved_servers.get(name))},"
                    f" but cluster{quoted_name} is {_server_name(current_servers.get(name))}"
                )
                hint = "select the same cluster, or save a plan for this one"
                raise PlanError("plan.target", problem, location=self._location, hint=hint)

    def restore(self, fresh: Plan) -> Plan:
        """Return the saved plan, with bodies from a freshly rendered plan.

        Raises PlanError with the differences if the two plans are not equal.
        """
        text = bytes(self._document.plan)
        changes = [*_describe_changes(read_items(text, name=self._location.name), fresh)]
        if changes:
            raise self._changed_inputs_error(changes)
        bodies = {item.ref: item.body for step in fresh.steps for item in step_items(step)}
        plan = from_json(text, name=self._location.name, bodies=bodies, key=self._key or b"")
        if plan.digest != fresh.digest:
            raise self._changed_inputs_error(["the order, or settings of units"])
        return plan

    def check_states(self, live_preview: LivePreview) -> None:
        """Raise PlanError with the differences if the live objects have changed."""
        current_preview, live_objects = live_preview
        saved_states = {state.object_ref: state for state in self._document.states}
        current_states = {
            state.object_ref: state
            for state in _object_states(current_preview, live_objects, self._key)
        }
        changes = [
            _state_message(
                cluster_ref, saved_states.get(cluster_ref), current_states.get(cluster_ref)
            )
            for cluster_ref in dict.fromkeys((*saved_states, *current_states))
            if saved_states.get(cluster_ref) != current_states.get(cluster_ref)
        ]
        if changes:
            problem = f"the cluster changed after the plan was saved: {_join_limited(changes)}"
            hint = f"nothing was written; {REPLAN_HINT}"
            raise PlanError("plan.stale", problem, location=self._location, hint=hint)

    def _changed_inputs_error(self, changes: list[str]) -> PlanError:
        problem = f"the inputs changed after the plan was saved: {_join_limited(changes)}"
        options = ", ".join(f"`{option}`" for option in self._document.words)
        options_hint = f"use the same options ({options}), or " if options else ""
        hint = f"nothing was written; {options_hint}{REPLAN_HINT}"
        return PlanError("plan.inputs", problem, location=self._location, hint=hint)


def _join_limited(messages: list[str]) -> str:
    more = f", and {len(messages) - MAX_NAMED:,} more" if len(messages) > MAX_NAMED else ""
    return f"{'; '.join(messages[:MAX_NAMED])}{more}"


class PlanInputs(NamedTuple):
    """Inputs of a saved plan: the PATH and the options given with it."""

    source: str
    options: tuple[str, ...] = ()


def save_plan(path: Path, inputs: PlanInputs, live_preview: LivePreview, session: Session) -> None:
    """Write a saved plan to a file. Raises FileError."""
    current_preview, live_objects = live_preview
    key = LocalKey(os.environ).find_or_create()
    document = _SavedDocument(
        KIND,
        VERSION,
        inputs.source,
        inputs.options,
        server_urls(session.targets),
        _object_states(current_preview, live_objects, key),
        msgspec.Raw(to_json(current_preview.desired_plan, key)),
    )
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    except OSError as error:
        problem = f"cannot write the plan: {error.strerror}"
        raise FileError("file.plan", problem, location=Location(str(path))) from None


def read_plan(path: Path) -> SavedPlan:
    """Read a file that `save_plan` wrote. Raises PlanError."""
    text, location = read_user_file(path), Location(str(path))
    try:
        header = msgspec.json.decode(text, type=_SavedHeader)
        if header.kind == KIND and header.version != VERSION:
            problem = f"the plan has version {header.version}, but Tidegate reads {VERSION}"
            raise PlanError("plan.version", problem, location=location, hint="save the plan again")
        if header.kind == KIND:
            return SavedPlan(msgspec.json.decode(text, type=_SavedDocument), str(path))
        reason = f"its kind is `{sanitize(header.kind)}`"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = sanitize(str(error))
    raise PlanError("plan.document", f"not a saved plan: {reason}", location=location)


def _object_states(
    current_preview: Preview, live_objects: Mapping[ClusterRef, LiveObject], key: bytes | None
) -> tuple[_ObjectState, ...]:
    """Return the planned action and the digest of each object.

    Status and counters of the server are not part of the digest: a busy object has not changed.
    """
    return tuple(
        _ObjectState(
            cluster_ref,
            difference.action,
            _state_digest(difference, live_objects.get(cluster_ref), key),
        )
        for cluster_ref, difference in current_preview.differences.items()
    )


class _SecretData(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw(b"null")


def _state_digest(difference: Difference, live: LiveObject | None, key: bytes | None) -> str:
    """Return a digest of an object's identity, its difference and, for a Secret, its data.

    Without a key the data is left out: values of Secrets could be guessed from the digest.
    """
    parts = [msgspec.json.encode(difference), live.uid.encode() if live else b""]
    if live is not None and key and is_secret_kind(live.ref.kind.name):
        parts.append(bytes(msgspec.json.decode(live.body, type=_SecretData).data))
    hasher = hashlib.blake2b(digest_size=16, key=key or b"")
    for part in parts:
        hasher.update(digest_bytes(part).encode())
    return hasher.hexdigest()


def _describe_changes(saved_items: Mapping[Ref, PlanItem], fresh: Plan) -> Iterator[str]:
    """Yield the differences between two plans, object by object."""
    current_items = {item.ref: item for step in fresh.steps for item in step_items(step)}
    for ref in dict.fromkeys((*saved_items, *current_items)):
        if ref not in current_items:
            yield f"{ref} was removed"
        elif ref not in saved_items:
            yield f"{ref} was added"
        elif saved_items[ref].digest not in ("", current_items[ref].digest):
            yield f"{ref} differs"


def _state_message(
    cluster_ref: ClusterRef, saved: _ObjectState | None, current: _ObjectState | None
) -> str:
    if saved is None or current is None:
        change = "would be pruned" if saved is None else "has no changes any more"
        return f"{cluster_ref.ref} {change}"
    if saved.fate is current.fate:
        return f"{cluster_ref.ref} has changed"
    return f"{cluster_ref.ref}: action changed from {saved.fate} to {current.fate}"


def _server_name(server: str | None) -> str:
    return "none" if server is None else server or "a simulated cluster"


async def preview_and_save(
    session: Session, workspace: Workspace, path: Path, inputs: PlanInputs
) -> tuple[Workspace, list[Preview]]:
    """Preview the workspace, and save its plan if no finding is an error."""
    live_preview = await preview_with_preflight(workspace.deployable_trees, session)
    findings = (*workspace.findings, *live_preview.preview.findings)
    not_saved = (
        NOT_SAVED_FINDING
        if any(finding.severity is Severity.ERROR for finding in findings)
        else None
    )
    if not_saved is None and any(finding.code == LOOKUP_CODE for finding in findings):
        not_saved = LOOKUP_NOT_SAVED_FINDING
    if not_saved is not None:
        return workspace, [
            replace(live_preview.preview, findings=(*live_preview.preview.findings, not_saved))
        ]
    save_plan(path, inputs, live_preview, session)
    return workspace, [live_preview.preview]


async def with_saved_plan(
    saved: SavedPlan, prepared: PreparedRollout, workspace: Workspace, session: Session
) -> PreparedRollout:
    """Return the prepared rollout with the saved plan.

    Raises PlanError if the saved plan is not what would be rolled out now.
    """
    saved.check_target(session)
    plan = saved.restore(prepared.plan_result.plan)
    unit_trees, _ = await apply_suspensions(workspace.deployable_trees, session)
    saved.check_states(await preview_against_live(unit_trees, session))
    return replace(prepared, plan_result=replace(prepared.plan_result, plan=plan))
