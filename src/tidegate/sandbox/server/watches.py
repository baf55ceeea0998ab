"""Open watches, and the selectors of lists and watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidegate.model.k8s.json_fields import get_value
from tidegate.model.k8s.labels import SelectorError, parse_field_selector, parse_label_selector
from tidegate.sandbox.kinds import SELECTABLE_FIELDS
from tidegate.sandbox.server.kind_registry import KindEntry
from tidegate.sandbox.server.store import GroupResource, ResourceTable, StoredObject, StoreEvent
from tidegate.world.messages import Bookmark, WatchEvent, WatchEventType
from tidegate.world.requests import RequestId, Selection

Predicate = Callable[[StoredObject], bool]
COMMON_FIELDS = frozenset({"metadata.name", "metadata.namespace"})
"""Fields for field selectors that every kind has."""


def build_predicate(selection: Selection) -> Predicate | None:
    """Return a predicate for the objects of a selection, or None if all are selected.

    Raises SelectorError for an unsupported field.
    """
    label_requirements, field_requirements = (
        parse_label_selector(selection.label_selector),
        parse_field_selector(selection.field_selector),
    )
    supported = COMMON_FIELDS | SELECTABLE_FIELDS.get(selection.kind, frozenset())
    for requirement in field_requirements:
        if requirement.key not in supported:
            raise SelectorError(f"field label not supported: {requirement.key}")
    if not label_requirements and not field_requirements:
        return None
    return lambda stored: (
        all(requirement.matches(stored.labels) for requirement in label_requirements)
        and all(
            requirement.matches({requirement.key: _field_value(stored, requirement.key)})
            for requirement in field_requirements
        )
    )


def _field_value(stored: StoredObject, path: str) -> str:
    match path:
        case "metadata.name":
            return stored.ref.name
        case "metadata.namespace":
            return stored.ref.namespace
        case _:
            value = get_value(stored.body, *path.split("."))
            return "" if value is None else str(value)


class WatchStream:
    """The stream of one watch."""

    def __init__(
        self, request_id: RequestId, selection: Selection, entry: KindEntry, *, since: int
    ) -> None:
        self.request_id = request_id
        self.selection = selection
        self.resource = entry.resource
        self.version = since
        self._kind = entry.kind
        self._predicate = build_predicate(selection)

    def to_watch_event(self, event: StoreEvent) -> WatchEvent | None:
        """Return the watch event for a change, or None if it is not selected.

        An object that enters the selection is added, and one that leaves it is deleted.

        Like `convertToWatchEvent` in `pkg/storage/cacher/cache_watcher.go` of k8s.io/apiserver
        0.36.4.
        """
        namespace = self.selection.namespace
        if namespace and event.stored.ref.namespace != namespace:
            return None
        was_selected = event.before is not None and self._is_selected(event.before)
        is_selected = event.change is not WatchEventType.DELETED and self._is_selected(event.stored)
        if not was_selected and not is_selected:
            return None
        change = (
            WatchEventType.MODIFIED
            if was_selected and is_selected
            else WatchEventType.ADDED
            if is_selected
            else WatchEventType.DELETED
        )
        return WatchEvent(
            self.request_id,
            change,
            self._visible_state(event, change).to_live(self._kind, self.selection.view),
        )

    def next_bookmark(self, table: ResourceTable) -> Bookmark | None:
        """Return a bookmark, or None if the client already has the latest version.

        Like `dispatchEvents` in `pkg/storage/cacher/cacher.go` of k8s.io/apiserver 0.36.4.
        """
        if table.latest_version <= self.version:
            return None
        self.version = table.latest_version
        return Bookmark(self.request_id, str(table.latest_version))

    def _visible_state(self, event: StoreEvent, change: WatchEventType) -> StoredObject:
        if (
            change is WatchEventType.DELETED
            and event.change is not WatchEventType.DELETED
            and event.before
        ):
            before = event.before
            return StoredObject(
                before.ref, before.body, before.managed_fields, event.stored.version
            )
        return event.stored

    def _is_selected(self, stored: StoredObject) -> bool:
        return self._predicate is None or self._predicate(stored)


class WatchStreams:
    """The open watches of one cluster, by resource."""

    def __init__(self) -> None:
        self._by_resource: dict[GroupResource, dict[RequestId, WatchStream]] = {}
        self._by_request: dict[RequestId, WatchStream] = {}

    def open(self, stream: WatchStream) -> None:
        """Add a stream."""
        self._by_request[stream.request_id] = stream
        self._by_resource.setdefault(stream.resource, {})[stream.request_id] = stream

    def close(self, request_id: RequestId) -> WatchStream | None:
        """Remove a stream; return None if it is not open."""
        stream = self._by_request.pop(request_id, None)
        if stream is not None:
            del self._by_resource[stream.resource][request_id]
        return stream

    def get(self, request_id: RequestId) -> WatchStream | None:
        """Return an open stream, or None."""
        return self._by_request.get(request_id)

    def list_streams(self) -> list[WatchStream]:
        """Return all open streams."""
        return list(self._by_request.values())

    def watch_events(self, resource: GroupResource, event: StoreEvent) -> Iterator[WatchEvent]:
        """Yield the event of each watch for a change."""
        for stream in self._by_resource.get(resource, {}).values():
            watch_event = stream.to_watch_event(event)
            if watch_event is not None:
                stream.version = event.stored.version
                yield watch_event
