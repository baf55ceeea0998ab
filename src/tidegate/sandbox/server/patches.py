"""JSON patch and merge patch. Nothing is changed in place; what is not touched is shared."""

from __future__ import annotations

from tidegate.model.objects import Json

APPEND = "-"


class PatchError(ValueError):
    """A patch that cannot be done, with the server's reason."""


def merge_patch(target: Json, patch: Json) -> Json:
    """RFC 7386: what the patch names is replaced, what it nulls is removed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(target: Json, operations: Json) -> Json:
    """RFC 6902: all of the operations, or none."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError("an operation is a mapping")
        target = _operate(target, operation)
    return target


def _operate(target: Json, operation: dict[str, Json]) -> Json:
    path = _pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _put(target, path, operation.get("value"), inserts=True)
        case "replace":
            # Servers replace a field that is not there: they put it.
            return _put(target, path, operation.get("value"), inserts=False)
        case "remove":
            return _remove(target, path)
        case "move":
            source = _pointer(operation.get("from"))
            return _put(_remove(target, source), path, _get(target, source), inserts=True)
        case "copy":
            source = _pointer(operation.get("from"))
            return _put(target, path, _get(target, source), inserts=True)
        case "test":
            if _get(target, path) != operation.get("value"):
                raise PatchError(f"testing path {operation.get('path')} failed")
            return target
        case unknown:
            raise PatchError(f"unknown operation: {unknown}")


def _pointer(text: Json) -> list[str]:
    if text == "":
        return []
    if not isinstance(text, str) or not text.startswith("/"):
        raise PatchError(f"not a path: {text}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _get(target: Json, path: list[str]) -> Json:
    for part in path:
        if isinstance(target, dict) and part in target:
            target = target[part]
        elif isinstance(target, list):
            target = target[_index(target, part)]
        else:
            raise PatchError(f"nothing at {'/'.join(path)}")
    return target


def _put(target: Json, path: list[str], value: Json, *, inserts: bool) -> Json:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(target, dict):
        if rest and head not in target:
            raise PatchError(f"nothing at {head}")
        return {**target, head: _put(target.get(head), rest, value, inserts=inserts)}
    if not isinstance(target, list):
        raise PatchError(f"nothing at {head}")
    if not rest and inserts:
        place = len(target) if head == APPEND else _index(target, head, extra=1)
        return [*target[:place], value, *target[place:]]
    place = _index(target, head)
    return [
        *target[:place],
        _put(target[place], rest, value, inserts=inserts),
        *target[place + 1 :],
    ]


def _remove(target: Json, path: list[str]) -> Json:
    if not path:
        return None
    head, rest = path[0], path[1:]
    if isinstance(target, dict) and head in target:
        if rest:
            return {**target, head: _remove(target[head], rest)}
        return {key: value for key, value in target.items() if key != head}
    if isinstance(target, list):
        place = _index(target, head)
        kept = [_remove(target[place], rest)] if rest else []
        return [*target[:place], *kept, *target[place + 1 :]]
    raise PatchError(f"nothing at {head}")


def _index(target: list[Json], part: str, *, extra: int = 0) -> int:
    if not part.isdigit() or int(part) >= len(target) + extra:
        raise PatchError(f"no item {part}")
    return int(part)
