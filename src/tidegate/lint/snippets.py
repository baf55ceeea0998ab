"""Checks of health that can be pasted: what a row knows of a kind, as Lua and as CEL."""

from __future__ import annotations

from tidegate.model.objects import Kind
from tidegate.model.operators import Check, Row
from tidegate.model.paths import Step, parse_path


def snippets(kind: Kind, row: Row) -> str:
    """Lua for argocd-cm, below it CEL for a Flux Kustomization. Empty where it cannot be said."""
    checks = [one for one in row.ready_when if not one.equals and not one.at_least]
    if len(checks) != len(row.ready_when) or any(one.matches for one in checks):
        return ""
    named = f"{kind.group}_{kind.name}" if kind.group else kind.name
    return "\n".join(
        [
            f"# argocd-cm: resource.customizations.health.{named}",
            f"resource.customizations.health.{named}: |",
            '  hs = {status = "Progressing", message = "waiting"}',
            *(f"  local ok{number} = false" for number in range(1, len(checks) + 1)),
            *(line for number, one in enumerate(checks, 1) for line in _lua(one, number)),
            f"  if {' and '.join(f'ok{n}' for n in range(1, len(checks) + 1)) or 'true'} then",
            '    hs.status = "Healthy"',
            "  end",
            "  return hs",
            "# Flux Kustomization: spec.healthCheckExprs",
            f"- apiVersion: {kind.api_version}",
            f"  kind: {kind.name}",
            f"  current: {_cel(checks)}",
        ]
    )


def _lua(check: Check, number: int) -> list[str]:
    """Sets one variable where the check holds."""
    if check.condition:
        wanted = str(check.wanted[0])
        return [
            "  for _, c in ipairs((obj.status or {}).conditions or {}) do",
            (
                f'    if c.type == "{check.condition}" and c.status == "{wanted}" then'
                f" ok{number} = true end"
            ),
            "  end",
        ]
    found = "obj"
    for step in parse_path(check.path):
        found = f"({found} or {{}}){_index(step)}"
    test = " or ".join(f"{found} == {_literal(one)}" for one in check.values) or f"{found} ~= nil"
    deny = check.negated != check.absent
    return [f"  ok{number} = {'not ' if deny else ''}({test})"]


def _index(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step + 1}]"
    return f'["{step}"]' if isinstance(step, str) else "[1]"


def _literal(value: str | int | bool) -> str:  # noqa: FBT001 - a value of YAML
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _cel(checks: list[Check]) -> str:
    parts = [_cel_check(one) for one in checks]
    return " && ".join(parts) or "true"


def _cel_check(check: Check) -> str:
    if check.condition:
        wanted = check.wanted[0]
        return (
            f'status.conditions.exists(c, c.type == "{check.condition}" && c.status == "{wanted}")'
        )
    steps = [f"[{one}]" if isinstance(one, int) else f".{one}" for one in parse_path(check.path)]
    path = "".join(steps).lstrip(".")
    test = " || ".join(f"{path} == {_literal(one)}" for one in check.values) or f"has({path})"
    deny = check.negated != check.absent
    return f"{'!' if deny else ''}({test})" if deny or "||" in test else test
