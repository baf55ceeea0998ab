"""Mypy plugin: `msgspec.structs.replace` takes names of fields only, which mypy cannot know."""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import FunctionContext, Plugin
from mypy.types import Instance, Type, TypeVarType, UnionType, get_proper_type


class StructReplacePlugin(Plugin):
    """Checks the keywords of `msgspec.structs.replace` against the fields of its struct."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return _check_fields if fullname == "msgspec.structs.replace" else None


def _check_fields(context: FunctionContext) -> Type:
    struct = get_proper_type(context.arg_types[0][0])
    if isinstance(struct, TypeVarType):
        struct = get_proper_type(struct.upper_bound)
    members = struct.items if isinstance(struct, UnionType) else [struct]
    types = [
        member.type for member in map(get_proper_type, members) if isinstance(member, Instance)
    ]
    for name in (name for names in context.arg_names[1:] for name in names if name):
        if types and not any(info.get(name) for info in types):
            context.api.fail(f"{types[0].name} has no field {name}", context.context)
    return context.default_return_type


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, as mypy asks for it."""
    return StructReplacePlugin
