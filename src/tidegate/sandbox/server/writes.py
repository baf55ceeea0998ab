"""Writes to objects: create, update, patch, apply, bind, delete."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Propagation, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.ownership.compare import is_same_json
from tidegate.sandbox.ownership.layout import get_layout
from tidegate.sandbox.ownership.owners import (
    ManagedFields,
    keep_unchanged_times,
    managed_fields_for_update,
)
from tidegate.sandbox.ownership.rules import (
    ApplyConflicts,
    Author,
    InvalidIntent,
    WriteScope,
    apply_intent,
    build_write_scope,
    update_managed_fields,
)
from tidegate.sandbox.server import lifecycle
from tidegate.sandbox.server.admission import AdmissionRequest, admit
from tidegate.sandbox.server.creation import (
    IdentityGenerator,
    find_selector_problems,
    prepare_for_create,
)
from tidegate.sandbox.server.kind_registry import (
    KindEntry,
    StatusError,
    conflict_error,
    invalid_error,
    not_found_error,
)
from tidegate.sandbox.server.patches import PatchError, apply_json_patch, apply_merge_patch
from tidegate.sandbox.server.store import ObjectStore, StoredObject, get_metadata
from tidegate.sandbox.server.strategic_merge import apply_strategic_patch
from tidegate.sandbox.server.validation import (
    invalid_intent_error,
    normalize_body,
    validate,
    validate_update,
)
from tidegate.schema.causes import invalid as invalid_field
from tidegate.schema.immutable import find_immutable_changes
from tidegate.world.messages import AlreadyExists, Conflict, Invalid, ServerError, Success
from tidegate.world.requests import PatchType, Verb, Write

STRATEGIC_PATCH_UNSUPPORTED = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)
"""Error for a strategic merge patch of a custom resource.

Like `NewUnsupportedMediaTypeError` in `pkg/endpoints/handlers/negotiation/errors.go` of
k8s.io/apiserver 0.36.4.
"""
MODIFIED_MESSAGE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
"""Message for a write that is based on another resource version.

Like `OptimisticLockErrorMsg` in `pkg/registry/generic/registry/store.go` of k8s.io/apiserver
0.36.4.
"""
IMMUTABLE_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
"""Metadata fields that no client can change."""


class WriteContext(msgspec.Struct, frozen=True):
    """A write in progress: the kind, and the object before the write."""

    write: Write
    """The write."""
    entry: KindEntry
    """The kind."""
    scope: WriteScope
    """The scope of field management."""
    before: StoredObject | None
    """The object before the write; None if it does not exist."""
    author: Author
    """The manager and the time of the write."""
    is_internal: bool = False
    """Whether a controller of the simulated cluster writes."""

    def to_success(self, stored: StoredObject, warnings: tuple[str, ...]) -> Success:
        """Return the response; without a body for controllers of the cluster."""
        return Success(
            stored.to_live_head() if self.is_internal else stored.to_live(self.entry.kind), warnings
        )

    @property
    def ref(self) -> Ref:
        """The object of the write."""
        return self.write.ref


class Writer:
    """The writes on the store of a cluster."""

    def __init__(
        self, store: ObjectStore, *, now: Callable[[], Ms], identities: IdentityGenerator
    ) -> None:
        self._store = store
        self._now = now
        self._identities = identities
        self._scopes: dict[tuple[Kind, str], WriteScope] = {}

    def perform(self, write: Write, entry: KindEntry, *, is_internal: bool = False) -> Success:
        """Perform a write. Raises StatusError if it is rejected.

        Internal writes, by controllers of the simulated cluster, are not validated: tests compare
        these controllers with a real server. They get a response without a body.
        """
        ref = write.ref
        before = self._store.get(entry.resource, ref.namespace, ref.name) if ref.name else None
        self._check_preconditions(write, entry, before)
        if write.verb is Verb.DELETE:
            return self._delete(write, entry, before)
        if write.subresource == "binding":
            return self._bind(write, entry, before)
        scope = self._get_scope(entry, write.subresource)
        author = Author(write.manager, lifecycle.format_rfc3339(self._now()))
        context = WriteContext(write, entry, scope, before, author, is_internal)
        match write.verb:
            case Verb.CREATE:
                return self._create(context)
            case Verb.APPLY:
                return self._apply(context)
            case Verb.REPLACE:
                return self._update(context, lambda _: decode_checked_body(write))
            case Verb.PATCH:
                return self._update(context, lambda live: apply_patch(live, write, entry))

    def _get_scope(self, entry: KindEntry, subresource: str) -> WriteScope:
        """Return the scope of writes to a kind, cached until its shape changes."""
        cached = self._scopes.get((entry.kind, subresource))
        if cached is not None and cached.shape is entry.shape:
            return cached
        scope = build_write_scope(
            entry.kind,
            entry.shape,
            subresource,
            has_status=entry.has_status,
            is_custom=entry.is_custom,
        )
        self._scopes[entry.kind, subresource] = scope
        return scope

    def _check_preconditions(
        self, write: Write, entry: KindEntry, before: StoredObject | None
    ) -> None:
        if before is None:
            if write.uid and write.verb is not Verb.DELETE:
                raise conflict_error(
                    entry, write.ref.name, "uid mismatch: no existing object was found"
                )
            return
        if write.uid and write.uid != before.uid:
            uids = f"UID in precondition: {write.uid}, UID in object meta: {before.uid}"
            raise conflict_error(entry, write.ref.name, f"Precondition failed: {uids}")
        if write.resource_version and write.resource_version != str(before.version):
            raise conflict_error(entry, write.ref.name, MODIFIED_MESSAGE)

    def _create(self, context: WriteContext) -> Success:
        body = _without_managed_fields(decode_checked_body(context.write))
        if get_metadata(body).get("resourceVersion"):
            raise StatusError(Invalid("resourceVersion should not be set on objects to be created"))
        warnings: tuple[str, ...] = ()
        if context.is_internal:
            body = normalize_body(body, context.entry)
        else:
            body, warnings = validate(body, context.entry, strict=context.write.strict)
        if context.before is not None:
            admit(AdmissionRequest(context.entry, "CREATE", context.ref, body), self._store)
            message = f'{context.entry.group_resource} "{context.ref.name}" already exists'
            prefix = "object is being deleted: " if context.before.is_deleting else ""
            raise StatusError(AlreadyExists(f"{prefix}{message}"))
        managed_fields = update_managed_fields(
            context.scope.blank, body, (), author=context.author, scope=context.scope
        )
        return self._store_new(context, body, managed_fields, warnings)

    def _apply(self, context: WriteContext) -> Success:
        intent = _without_managed_fields(decode_checked_body(context.write))
        before = context.before
        if before is None and context.write.subresource:
            raise not_found_error(context.entry, context.ref.name)
        self._check_body_preconditions(context, intent)
        result = apply_intent(
            before.body if before else None,
            before.managed_fields if before else (),
            intent,
            author=context.author,
            scope=context.scope,
            force=context.write.force,
        )
        if isinstance(result, ApplyConflicts):
            raise StatusError(Conflict(result.message, result.owned_fields))
        if isinstance(result, InvalidIntent):
            raise invalid_intent_error(result.problems, context.entry, context.ref)
        strict, subresource = context.write.strict, context.write.subresource
        merged = result.body
        if before is not None and subresource == "status" and context.entry.is_custom:
            merged = _with_status_only(before.body, merged)
        body, warnings = validate(
            merged, context.entry, strict=strict, keep_nulls=True, subresource=subresource
        )
        if before is None:
            return self._store_new(context, body, result.managed_fields, warnings)
        return self._store_update(context, before, body, result.managed_fields, warnings)

    def _update(self, context: WriteContext, change: Callable[[JsonObject], JsonObject]) -> Success:
        before = context.before
        if before is None:
            raise not_found_error(context.entry, context.ref.name)
        body = change(_body_to_change(context.write, before))
        self._check_body_preconditions(context, body)
        sent_fields = get_metadata(body).get("managedFields")
        initial_fields = managed_fields_for_update(
            before.managed_fields, sent_fields, subresource=context.write.subresource
        )
        body = self._reset_fields(context, before, preserve_metadata(body, before))
        warnings: tuple[str, ...] = ()
        if not context.is_internal or context.entry.is_custom:
            strict = context.write.strict
            body, warnings = validate_update(before.body, body, context.entry, strict=strict)
        managed_fields = update_managed_fields(
            before.body, body, initial_fields, author=context.author, scope=context.scope
        )
        return self._store_update(context, before, body, managed_fields, warnings)

    def _check_body_preconditions(self, context: WriteContext, body: JsonObject) -> None:
        """Check uid and resource version of a body, if it has them.

        Like `Update` in `pkg/registry/generic/registry/store.go` of k8s.io/apiserver 0.36.4.
        """
        uid = get_metadata(body).get("uid")
        if uid and context.before and uid != context.before.uid:
            cause = invalid_field("metadata.uid", uid, "field is immutable")
            raise invalid_error(context.entry, context.ref.name, [cause])
        version = get_metadata(body).get("resourceVersion")
        if version and context.before and str(context.before.version) != version:
            raise conflict_error(context.entry, context.ref.name, MODIFIED_MESSAGE)
        if not version and context.write.verb is Verb.REPLACE and context.entry.is_custom:
            reason = "must be specified for an update"
            cause = invalid_field("metadata.resourceVersion", 0, reason)
            raise invalid_error(context.entry, context.ref.name, [cause])

    def _store_new(
        self,
        context: WriteContext,
        body: JsonObject,
        managed_fields: ManagedFields,
        warnings: tuple[str, ...],
    ) -> Success:
        """Complete a new object with metadata and initial fields of its kind, and store it."""
        entry = context.entry
        ref = requested_ref = context.ref
        if not ref.name:
            prefix = str(get_metadata(body).get("generateName", ""))
            requested_ref = msgspec.structs.replace(ref, name=prefix)
        if context.write.subresource:
            raise not_found_error(entry, requested_ref.name)
        admit(AdmissionRequest(entry, "CREATE", requested_ref, body), self._store)
        if not ref.name:
            ref = msgspec.structs.replace(
                ref, name=self._identities.generate_name(requested_ref.name)
            )
        new_body = prepare_for_create(
            body, entry, ref, now=self._now(), identities=self._identities
        )
        if entry.resource == lifecycle.JOBS and (causes := [*find_selector_problems(new_body)]):
            raise invalid_error(entry, ref.name, causes)
        if context.write.dry_run:
            stored = StoredObject(ref, new_body, managed_fields, self._store.version)
        else:
            stored = self._store.put(entry.resource, ref, new_body, managed_fields)
        return context.to_success(stored, warnings)

    def _reset_fields(
        self, context: WriteContext, before: StoredObject, body: JsonObject
    ) -> JsonObject:
        """Return the body with the previous value of fields that this write cannot change."""
        if context.write.subresource == "status":
            return lifecycle.apply_status(before, body, context.entry)
        if context.entry.has_status:
            value = before.body.get("status")
            if value is None:
                return {key: field for key, field in body.items() if key != "status"}
            return {**body, "status": value}
        return body

    def _store_update(
        self,
        context: WriteContext,
        before: StoredObject,
        body: JsonObject,
        managed_fields: ManagedFields,
        warnings: tuple[str, ...],
    ) -> Success:
        entry = context.entry
        body = self._reset_fields(context, before, preserve_metadata(body, before))
        admit(
            AdmissionRequest(entry, "UPDATE", before.ref, body, context.write.subresource),
            self._store,
        )
        if is_same_json(body, before.body):
            body, managed_fields = (
                before.body,
                keep_unchanged_times(before.managed_fields, managed_fields),
            )
            if managed_fields == before.managed_fields:
                return context.to_success(before, warnings)
        else:
            self._check_update(context, before, body)
            if not context.write.subresource:
                body = lifecycle.increment_generation(body, before, entry)
        if context.write.dry_run:
            return Success(
                StoredObject(before.ref, body, managed_fields, before.version).to_live(entry.kind),
                warnings,
            )
        if lifecycle.is_deletion_complete(body, entry):
            deleted = self._store.remove(
                entry.resource, StoredObject(before.ref, body, managed_fields, 0)
            )
            return context.to_success(deleted, warnings)
        return context.to_success(
            self._store.put(entry.resource, before.ref, body, managed_fields), warnings
        )

    def _check_update(self, context: WriteContext, before: StoredObject, body: JsonObject) -> None:
        causes = [*find_immutable_changes(before.body, body)]
        causes += lifecycle.find_added_finalizers(before, body)
        if causes:
            raise invalid_error(context.entry, context.ref.name, causes)

    def _bind(self, write: Write, entry: KindEntry, before: StoredObject | None) -> Success:
        """Assign a pod to a node. No manager owns the fields of a binding."""
        if before is None:
            raise not_found_error(entry, write.ref.name)
        node = get_text(_decode_body(write), "target", "name")
        if assigned_node := get_text(before.body, "spec", "nodeName"):
            name = write.ref.name
            message = (
                f'pods/binding "{name}": pod {name} is already assigned to node "{assigned_node}"'
            )
            raise StatusError(Conflict(f"Operation cannot be fulfilled on {message}"))
        if not write.dry_run:
            body = lifecycle.bind_pod(before, node, now=self._now())
            self._store.put(entry.resource, before.ref, body, before.managed_fields)
        return Success()

    def _delete(self, write: Write, entry: KindEntry, before: StoredObject | None) -> Success:
        if before is None:
            raise not_found_error(entry, write.ref.name)
        if write.dry_run:
            return Success(before.to_live(entry.kind))
        warnings: tuple[str, ...] = ()
        if entry.resource == lifecycle.JOBS and write.propagation is None:
            write = msgspec.structs.replace(write, propagation=Propagation.ORPHAN)
            warnings = (lifecycle.ORPHANED_PODS_WARNING,)
        body = lifecycle.start_deletion(before, entry, write, now=self._now())
        if body is None:
            self._store.remove(entry.resource, before)
            return Success(None, warnings)
        if not is_same_json(body, before.body):
            before = self._store.put(entry.resource, before.ref, body, before.managed_fields)
        return Success(before.to_live(entry.kind), warnings)


def decode_checked_body(write: Write) -> JsonObject:
    """Return the body of a write. Raises StatusError if it does not match the request."""
    body = _decode_body(write)
    metadata = get_metadata(body)
    fields = (
        ("apiVersion", body.get("apiVersion"), write.ref.kind.api_version),
        ("kind", body.get("kind"), write.ref.kind.name),
        ("name", metadata.get("name"), write.ref.name),
        ("namespace", metadata.get("namespace"), write.ref.namespace),
    )
    for name, actual, expected in fields:
        if actual and expected and actual != expected:
            raise StatusError(
                Invalid(
                    f"the {name} of the object ({actual}) does not match the request ({expected})"
                )
            )
    return body


def _decode_body(write: Write) -> JsonObject:
    try:
        body: Json = msgspec.json.decode(write.body)
    except msgspec.DecodeError as error:
        raise StatusError(Invalid(f"the body of the request is not JSON: {error}")) from None
    if not isinstance(body, dict):
        raise StatusError(Invalid("the body of the request is not an object"))
    return body


def apply_patch(live: JsonObject, write: Write, entry: KindEntry) -> JsonObject:
    """Return a live object after a patch. Raises StatusError if the patch cannot be applied.

    Like `applyPatchToCurrentObject` in `pkg/endpoints/handlers/patch.go` of k8s.io/apiserver
    0.36.4.
    """
    if write.patch_type is PatchType.STRATEGIC and entry.is_custom:
        raise StatusError(ServerError(415, "UnsupportedMediaType", STRATEGIC_PATCH_UNSUPPORTED))
    try:
        patch: Json = msgspec.json.decode(write.body)
        if write.patch_type is PatchType.STRATEGIC:
            body = apply_strategic_patch(live, patch, get_layout(entry.shape))
        else:
            patch_function = (
                apply_json_patch if write.patch_type is PatchType.JSON else apply_merge_patch
            )
            body = patch_function(live, patch)
    except (PatchError, msgspec.DecodeError) as error:
        raise StatusError(Invalid(f"the patch cannot be done: {error}")) from None
    if not isinstance(body, dict):
        raise StatusError(Invalid("the patched body is not an object"))
    return body


def _body_to_change(write: Write, before: StoredObject) -> JsonObject:
    """Return the body that a change starts from, with the metadata that it can refer to."""
    if b"metadata" not in write.body:
        return before.body
    return before.to_body(with_managed_fields=b"managedFields" in write.body)


def _without_managed_fields(body: JsonObject) -> JsonObject:
    metadata = {k: v for k, v in get_metadata(body).items() if k != "managedFields"}
    return {**body, "metadata": metadata}


def preserve_metadata(body: JsonObject, before: StoredObject) -> JsonObject:
    """Return the body with the metadata that no client can change.

    Like `BeforeUpdate` in `pkg/registry/rest/update.go` of k8s.io/apiserver 0.36.4.
    """
    if body.get("metadata") is before.metadata:
        return body
    metadata = {
        key: value
        for key, value in get_metadata(body).items()
        if key not in IMMUTABLE_METADATA and key not in ("resourceVersion", "managedFields")
    }
    metadata |= {key: before.metadata[key] for key in IMMUTABLE_METADATA if key in before.metadata}
    metadata["name"] = before.ref.name
    if before.ref.namespace:
        metadata["namespace"] = before.ref.namespace
    return {**body, "metadata": before.metadata if metadata == before.metadata else metadata}


def _with_status_only(before: JsonObject, body: JsonObject) -> JsonObject:
    """Return the custom resource for a status apply: only metadata and status come from `body`.

    A null status is removed.

    Like `PrepareForUpdate` in `pkg/registry/customresource/status_strategy.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    unchanged = {key: value for key, value in before.items() if key != "status"}
    status = body.get("status")
    return {
        **unchanged,
        "metadata": body["metadata"],
        **({} if status is None else {"status": status}),
    }
