"""JSON patch and merge patch. Values are not changed in place; unchanged parts are shared.

Like `applyJSPatch` in `pkg/endpoints/handlers/patch.go` of k8s.io/apiserver 0.36.4.
"""

from __future__ import annotations

from tidegate.model.k8s.objects import Json

APPEND = "-"


class PatchError(ValueError):
    """A patch that cannot be applied, with the server's message."""


def apply_merge_patch(target: Json, patch: Json) -> Json:
    """Apply a merge patch (RFC 7386): named fields are replaced, null removes a field."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), value)
    return merged


def apply_json_patch(target: Json, operations: Json) -> Json:
    """Apply a JSON patch (RFC 6902), all operations or none. Raises PatchError."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError("an operation is a mapping")
        target = _apply_operation(target, operation)
    return target


def _apply_operation(target: Json, operation: dict[str, Json]) -> Json:
    path = _parse_pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _put(target, path, operation.get("value"), insert=True)
        case "replace":
            # Servers accept `replace` for a missing field: they add the field.
            return _put(target, path, operation.get("value"), insert=False)
        case "remove":
            return _remove(target, path)
        case "move":
            source = _parse_pointer(operation.get("from"))
            return _put(_remove(target, source), path, _get(target, source), insert=True)
        case "copy":
            source = _parse_pointer(operation.get("from"))
            return _put(target, path, _get(target, source), insert=True)
        case "test":
            if _get(target, path) != operation.get("value"):
                raise PatchError(f"testing path {operation.get('path')} failed")
            return target
        case unknown:
            raise PatchError(f"unknown operation: {unknown}")


def _parse_pointer(text: Json) -> list[str]:
    if text == "":
        return []
    if not isinstance(text, str) or not text.startswith("/"):
        raise PatchError(f"not a path: {text}")
    return [token.replace("~1", "/").replace("~0", "~") for token in text[1:].split("/")]


def _get(target: Json, path: list[str]) -> Json:
    for token in path:
        if isinstance(target, dict) and token in target:
            target = target[token]
        elif isinstance(target, list):
            target = target[_parse_index(target, token)]
        else:
            raise PatchError(f"nothing at {'/'.join(path)}")
    return target


def _put(target: Json, path: list[str], value: Json, *, insert: bool) -> Json:
    if not path:
        return value
    token, remaining = path[0], path[1:]
    if isinstance(target, dict):
        if remaining and token not in target:
            raise PatchError(f"nothing at {token}")
        return {**target, token: _put(target.get(token), remaining, value, insert=insert)}
    if not isinstance(target, list):
        raise PatchError(f"nothing at {token}")
    if not remaining and insert:
        index = len(target) if token == APPEND else _parse_index(target, token, extra=1)
        return [*target[:index], value, *target[index:]]
    index = _parse_index(target, token)
    return [
        *target[:index],
        _put(target[index], remaining, value, insert=insert),
        *target[index + 1 :],
    ]


def _remove(target: Json, path: list[str]) -> Json:
    if not path:
        return None
    token, remaining = path[0], path[1:]
    if isinstance(target, dict) and token in target:
        if remaining:
            return {**target, token: _remove(target[token], remaining)}
        return {key: value for key, value in target.items() if key != token}
    if isinstance(target, list):
        index = _parse_index(target, token)
        replacement = [_remove(target[index], remaining)] if remaining else []
        return [*target[:index], *replacement, *target[index + 1 :]]
    raise PatchError(f"nothing at {token}")


def _parse_index(target: list[Json], token: str, *, extra: int = 0) -> int:
    if not token.isdigit() or int(token) >= len(target) + extra:
        raise PatchError(f"no item {token}")
    return int(token)
