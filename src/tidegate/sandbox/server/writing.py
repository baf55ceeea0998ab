"""Writes: what becomes of an object when somebody creates, changes, applies to or deletes it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Propagation, Ref
from tidegate.model.reading import text
from tidegate.sandbox.ownership.compare import same
from tidegate.sandbox.ownership.layout import layout_of
from tidegate.sandbox.ownership.owners import Owners, keep_times, owners_for_update
from tidegate.sandbox.ownership.rules import (
    Author,
    Conflicts,
    Terms,
    Unfit,
    apply,
    terms_of,
    update,
)
from tidegate.sandbox.server import lifecycle
from tidegate.sandbox.server.admission import Admission, admit
from tidegate.sandbox.server.beginning import Names, begin, find_foreign_labels
from tidegate.sandbox.server.keeping import inspect, inspect_change, keep, unfit
from tidegate.sandbox.server.patches import PatchError, json_patch, merge_patch
from tidegate.sandbox.server.register import KindEntry, RefusedCall, invalid, missing, stale
from tidegate.sandbox.server.store import Body, ObjectStore, Stored, metadata_of
from tidegate.sandbox.server.strategic import strategic_patch
from tidegate.schema.causes import invalid as invalid_field
from tidegate.schema.frozen import find_changed
from tidegate.world.calls import PatchForm, Verb, Write
from tidegate.world.facts import Conflict, Done, Exists, Failed, Invalid

NOT_STRATEGIC = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)
"""What is said of a strategic patch for a custom kind."""
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
"""Metadata that no client changes."""


class Writing(msgspec.Struct, frozen=True):
    """A write that is under way: to which kind, and what was there before."""

    write: Write
    entry: KindEntry
    terms: Terms
    before: Stored | None
    author: Author
    is_own: bool = False

    def answer(self, stored: Stored, warnings: tuple[str, ...]) -> Done:
        return Done(stored.head() if self.is_own else stored.live(self.entry.kind), warnings)

    @property
    def ref(self) -> Ref:
        return self.write.ref


class Writer:
    """Turns writes into states of the store."""

    def __init__(self, store: ObjectStore, *, now: Callable[[], Ms], names: Names) -> None:
        self._store = store
        self._now = now
        self._names = names
        self._known_terms: dict[tuple[Kind, str], Terms] = {}

    def perform(self, write: Write, entry: KindEntry, *, is_own: bool = False) -> Done:
        """Do it, or raise why not. What the cluster's own controllers write is not inspected: they
        are held to a real server by tests, and ask only for the head of the answer."""
        ref = write.ref
        before = self._store.get(entry.resource, ref.namespace, ref.name) if ref.name else None
        self._check_preconditions(write, entry, before)
        if write.verb is Verb.DELETE:
            return self._delete(write, entry, before)
        if write.subresource == "binding":
            return self._bind(write, entry, before)
        terms = self._terms(entry, write.subresource)
        author = Author(write.manager, lifecycle.timestamp(self._now()))
        writing = Writing(write, entry, terms, before, author, is_own)
        match write.verb:
            case Verb.CREATE:
                return self._create(writing)
            case Verb.APPLY:
                return self._apply(writing)
            case Verb.REPLACE:
                return self._change(writing, lambda _: read_body(write))
            case Verb.PATCH:
                return self._change(writing, lambda live: patched(live, write, entry))

    def _terms(self, entry: KindEntry, subresource: str) -> Terms:
        """Worked out once for a kind, until its shape is another."""
        known = self._known_terms.get((entry.kind, subresource))
        if known is not None and known.shape is entry.shape:
            return known
        terms = terms_of(
            entry.kind,
            entry.shape,
            subresource,
            has_status=entry.has_status,
            is_custom=entry.is_custom,
        )
        self._known_terms[entry.kind, subresource] = terms
        return terms

    def _check_preconditions(self, write: Write, entry: KindEntry, before: Stored | None) -> None:
        if before is None:
            if write.uid and write.verb is not Verb.DELETE:
                raise stale(entry, write.ref.name, "uid mismatch: no existing object was found")
            return
        if write.uid and write.uid != before.uid:
            uids = f"UID in precondition: {write.uid}, UID in object meta: {before.uid}"
            raise stale(entry, write.ref.name, f"Precondition failed: {uids}")
        if write.version and write.version != str(before.version):
            raise stale(entry, write.ref.name, MODIFIED)

    def _create(self, writing: Writing) -> Done:
        body = _unmanaged(read_body(writing.write))
        if metadata_of(body).get("resourceVersion"):
            raise RefusedCall(Invalid("resourceVersion should not be set on objects to be created"))
        warnings: tuple[str, ...] = ()
        if writing.is_own:
            body = keep(body, writing.entry)
        else:
            body, warnings = inspect(body, writing.entry, strict=writing.write.strict)
        if writing.before is not None:
            admit(Admission(writing.entry, "CREATE", writing.ref, body), self._store)
            told = f'{writing.entry.title} "{writing.ref.name}" already exists'
            leaving = "object is being deleted: " if writing.before.is_deleting else ""
            raise RefusedCall(Exists(f"{leaving}{told}"))
        owners = update(writing.terms.blank, body, (), by=writing.author, terms=writing.terms)
        return self._commit_new(writing, body, owners, warnings)

    def _apply(self, writing: Writing) -> Done:
        intent = _unmanaged(read_body(writing.write))
        before = writing.before
        if before is None and writing.write.subresource:
            raise missing(writing.entry, writing.ref.name)
        self._check_version(writing, intent)
        result = apply(
            before.body if before else None,
            before.owners if before else (),
            intent,
            by=writing.author,
            terms=writing.terms,
            force=writing.write.force,
        )
        if isinstance(result, Conflicts):
            raise RefusedCall(Conflict(result.message, result.owned))
        if isinstance(result, Unfit):
            raise unfit(result.problems, writing.entry, writing.ref)
        strict, through = writing.write.strict, writing.write.subresource
        wanted = result.body
        if before is not None and through == "status" and writing.entry.is_custom:
            wanted = _with_status(before.body, wanted)
        body, warnings = inspect(
            wanted, writing.entry, strict=strict, keeps_nulls=True, through=through
        )
        if before is None:
            return self._commit_new(writing, body, result.owners, warnings)
        return self._commit(writing, before, body, result.owners, warnings)

    def _change(self, writing: Writing, changed: Callable[[Body], Body]) -> Done:
        before = writing.before
        if before is None:
            raise missing(writing.entry, writing.ref.name)
        body = changed(_read_for(writing.write, before))
        self._check_version(writing, body)
        claimed = metadata_of(body).get("managedFields")
        start = owners_for_update(before.owners, claimed, subresource=writing.write.subresource)
        body = self._reset(writing, before, settle_metadata(body, before))
        warnings: tuple[str, ...] = ()
        if not writing.is_own or writing.entry.is_custom:
            strict = writing.write.strict
            body, warnings = inspect_change(before.body, body, writing.entry, strict=strict)
        owners = update(before.body, body, start, by=writing.author, terms=writing.terms)
        return self._commit(writing, before, body, owners, warnings)

    def _check_version(self, writing: Writing, body: Body) -> None:
        """A body may say which life and which version of the object it means."""
        uid = metadata_of(body).get("uid")
        if uid and writing.before and uid != writing.before.uid:
            cause = invalid_field("metadata.uid", uid, "field is immutable")
            raise invalid(writing.entry, writing.ref.name, [cause])
        version = metadata_of(body).get("resourceVersion")
        if version and (writing.before is None or str(writing.before.version) != version):
            raise stale(writing.entry, writing.ref.name, MODIFIED)
        if not version and writing.write.verb is Verb.REPLACE and writing.entry.is_custom:
            why = "must be specified for an update"
            cause = invalid_field("metadata.resourceVersion", 0, why)
            raise invalid(writing.entry, writing.ref.name, [cause])

    def _commit_new(
        self, writing: Writing, body: Body, owners: Owners, warnings: tuple[str, ...]
    ) -> Done:
        """Give a new object its metadata and what its kind starts with, and store it."""
        entry = writing.entry
        ref = asked = writing.ref
        if not ref.name:
            prefix = str(metadata_of(body).get("generateName", ""))
            asked = msgspec.structs.replace(ref, name=prefix)
        if writing.write.subresource:
            raise missing(entry, asked.name)
        admit(Admission(entry, "CREATE", asked, body), self._store)
        if not ref.name:
            ref = msgspec.structs.replace(ref, name=self._names.suffixed(asked.name))
        begun = begin(body, entry, ref, now=self._now(), names=self._names)
        if entry.resource == lifecycle.JOBS and (causes := [*find_foreign_labels(begun)]):
            raise invalid(entry, ref.name, causes)
        if writing.write.dry_run:
            stored = Stored(ref, begun, owners, self._store.version)
        else:
            stored = self._store.put(entry.resource, ref, begun, owners)
        return writing.answer(stored, warnings)

    def _reset(self, writing: Writing, before: Stored, body: Body) -> Body:
        """What this way of writing cannot change is as it was."""
        if writing.write.subresource == "status":
            return lifecycle.change_status(before, body, writing.entry)
        if writing.entry.has_status:
            value = before.body.get("status")
            if value is None:
                return {key: part for key, part in body.items() if key != "status"}
            return {**body, "status": value}
        return body

    def _commit(
        self,
        writing: Writing,
        before: Stored,
        body: Body,
        owners: Owners,
        warnings: tuple[str, ...],
    ) -> Done:
        entry = writing.entry
        body = self._reset(writing, before, settle_metadata(body, before))
        admit(Admission(entry, "UPDATE", before.ref, body, writing.write.subresource), self._store)
        if same(body, before.body):
            body, owners = before.body, keep_times(before.owners, owners)
            if owners == before.owners:
                return writing.answer(before, warnings)
        else:
            self._check_change(writing, before, body)
            if not writing.write.subresource:
                body = lifecycle.count(body, before, entry)
        if writing.write.dry_run:
            return Done(Stored(before.ref, body, owners, before.version).live(entry.kind), warnings)
        if lifecycle.is_over(body, entry):
            gone = self._store.remove(entry.resource, Stored(before.ref, body, owners, 0))
            return writing.answer(gone, warnings)
        return writing.answer(self._store.put(entry.resource, before.ref, body, owners), warnings)

    def _check_change(self, writing: Writing, before: Stored, body: Body) -> None:
        causes = [*find_changed(before.body, body)]
        causes += lifecycle.late_finalizers(before, body)
        if causes:
            raise invalid(writing.entry, writing.ref.name, causes)

    def _bind(self, write: Write, entry: KindEntry, before: Stored | None) -> Done:
        """Put a pod on a node. Nobody owns what a binding sets."""
        if before is None:
            raise missing(entry, write.ref.name)
        node = text(_decoded(write), "target", "name")
        if placed := text(before.body, "spec", "nodeName"):
            name = write.ref.name
            told = f'pods/binding "{name}": pod {name} is already assigned to node "{placed}"'
            raise RefusedCall(Conflict(f"Operation cannot be fulfilled on {told}"))
        if not write.dry_run:
            body = lifecycle.bind(before, node, now=self._now())
            self._store.put(entry.resource, before.ref, body, before.owners)
        return Done()

    def _delete(self, write: Write, entry: KindEntry, before: Stored | None) -> Done:
        if before is None:
            raise missing(entry, write.ref.name)
        if write.dry_run:
            return Done(before.live(entry.kind))
        warnings: tuple[str, ...] = ()
        if entry.resource == lifecycle.JOBS and write.propagation is None:
            write = msgspec.structs.replace(write, propagation=Propagation.ORPHAN)
            warnings = (lifecycle.PODS_STAY,)
        body = lifecycle.end(before, entry, write, now=self._now())
        if body is None:
            self._store.remove(entry.resource, before)
            return Done(None, warnings)
        if not same(body, before.body):
            before = self._store.put(entry.resource, before.ref, body, before.owners)
        return Done(before.live(entry.kind), warnings)


def read_body(write: Write) -> Body:
    """The body of a write, which must speak of the object that the write is for."""
    body = _decoded(write)
    metadata = metadata_of(body)
    claims = (
        ("apiVersion", body.get("apiVersion"), write.ref.kind.api_version),
        ("kind", body.get("kind"), write.ref.kind.name),
        ("name", metadata.get("name"), write.ref.name),
        ("namespace", metadata.get("namespace"), write.ref.namespace),
    )
    for name, said, meant in claims:
        if said and meant and said != meant:
            raise RefusedCall(
                Invalid(f"the {name} of the object ({said}) does not match the request ({meant})")
            )
    return body


def _decoded(write: Write) -> Body:
    try:
        body: Json = msgspec.json.decode(write.body)
    except msgspec.DecodeError as error:
        raise RefusedCall(Invalid(f"the body of the request is not JSON: {error}")) from None
    if not isinstance(body, dict):
        raise RefusedCall(Invalid("the body of the request is not an object"))
    return body


def patched(live: Body, write: Write, entry: KindEntry) -> Body:
    """A live object after a patch."""
    if write.form is PatchForm.STRATEGIC and entry.is_custom:
        raise RefusedCall(Failed(415, "UnsupportedMediaType", NOT_STRATEGIC))
    try:
        patch: Json = msgspec.json.decode(write.body)
        if write.form is PatchForm.STRATEGIC:
            body = strategic_patch(live, patch, layout_of(entry.shape))
        else:
            change = json_patch if write.form is PatchForm.JSON else merge_patch
            body = change(live, patch)
    except (PatchError, msgspec.DecodeError) as error:
        raise RefusedCall(Invalid(f"the patch cannot be done: {error}")) from None
    if not isinstance(body, dict):
        raise RefusedCall(Invalid("the patched body is not an object"))
    return body


def _read_for(write: Write, before: Stored) -> Body:
    """The object that a change starts from, with as much of its metadata as the change can ask."""
    if b"metadata" not in write.body:
        return before.body
    return before.whole(managed=b"managedFields" in write.body)


def _unmanaged(body: Body) -> Body:
    metadata = {k: v for k, v in metadata_of(body).items() if k != "managedFields"}
    return {**body, "metadata": metadata}


def settle_metadata(body: Body, before: Stored) -> Body:
    """What clients say of a life's own facts is not heard."""
    if body.get("metadata") is before.metadata:
        return body
    metadata = {
        key: value
        for key, value in metadata_of(body).items()
        if key not in KEPT and key not in ("resourceVersion", "managedFields")
    }
    metadata |= {key: before.metadata[key] for key in KEPT if key in before.metadata}
    metadata["name"] = before.ref.name
    if before.ref.namespace:
        metadata["namespace"] = before.ref.namespace
    return {**body, "metadata": before.metadata if metadata == before.metadata else metadata}


def _with_status(before: Body, body: Body) -> Body:
    """What is looked at of a custom object that is applied through its status: no more than that.

    A status that is null is none.
    """
    rest = {key: part for key, part in before.items() if key != "status"}
    status = body.get("status")
    return {**rest, "metadata": body["metadata"], **({} if status is None else {"status": status})}
