"""Health checks to paste: the readiness checks of a kind in the catalog, in Lua and CEL."""

from __future__ import annotations

from tidegate.model.k8s.objects import Kind
from tidegate.model.k8s.paths import PathStep, parse_path
from tidegate.model.operators.rows import Check, KindRow


def health_check_snippets(kind: Kind, row: KindRow) -> str:
    """Return Lua for argocd-cm and CEL for a Flux Kustomization; "" if there is no equivalent."""
    checks = _portable_checks(row)
    if not checks:
        return ""
    setting_name = f"{kind.group}_{kind.name}" if kind.group else kind.name
    return "\n".join(
        [
            f"# argocd-cm: resource.customizations.health.{setting_name}",
            f"resource.customizations.health.{setting_name}: |",
            '  hs = {status = "Progressing", message = "waiting"}',
            *(f"  local ok{number} = false" for number in range(1, len(checks) + 1)),
            *(line for number, check in enumerate(checks, 1) for line in _lua(check, number)),
            f"  if {' and '.join(f'ok{n}' for n in range(1, len(checks) + 1)) or 'true'} then",
            '    hs.status = "Healthy"',
            "  end",
            "  return hs",
            "# Flux Kustomization: spec.healthCheckExprs",
            *_expression_lines(kind, checks),
        ]
    )


def health_expression_snippet(kind: Kind, row: KindRow) -> str:
    """Return CEL for the spec of a Flux Kustomization; "" if there is no equivalent."""
    checks = _portable_checks(row)
    lines = (f"  {line}" for line in _expression_lines(kind, checks))
    return "\n".join(("spec:", "  healthCheckExprs:", *lines)) if checks else ""


def _portable_checks(row: KindRow) -> list[Check]:
    """Return the checks of a kind; none if one has no equivalent in Lua and CEL."""
    is_portable = not any(
        check.equals or check.at_least or check.matches for check in row.ready_when
    )
    return [*row.ready_when] if is_portable else []


def _expression_lines(kind: Kind, checks: list[Check]) -> list[str]:
    return [
        f"- apiVersion: {kind.api_version}",
        f"  kind: {kind.name}",
        f"  current: {_cel(checks)}",
    ]


def _lua(check: Check, number: int) -> list[str]:
    """Return lines that set one variable if the check passes."""
    if check.condition:
        expected = str(check.expected_values[0])
        return [
            "  for _, c in ipairs((obj.status or {}).conditions or {}) do",
            (
                f'    if c.type == "{check.condition}" and c.status == "{expected}" then'
                f" ok{number} = true end"
            ),
            "  end",
        ]
    expression = "obj"
    for step in parse_path(check.path):
        expression = f"({expression} or {{}}){_index(step)}"
    test = (
        " or ".join(f"{expression} == {_literal(value)}" for value in check.values)
        or f"{expression} ~= nil"
    )
    deny = check.negated != check.absent
    return [f"  ok{number} = {'not ' if deny else ''}({test})"]


def _index(step: PathStep) -> str:
    if isinstance(step, int):
        return f"[{step + 1}]"
    return f'["{step}"]' if isinstance(step, str) else "[1]"


def _literal(value: str | int | bool) -> str:  # noqa: FBT001 - a value of YAML
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _cel(checks: list[Check]) -> str:
    parts = [_cel_check(check) for check in checks]
    return " && ".join(parts) or "true"


def _cel_check(check: Check) -> str:
    if check.condition:
        expected = check.expected_values[0]
        return (
            f'status.conditions.exists(c, c.type == "{check.condition}" && c.status =='
            f' "{expected}")'
        )
    steps = [
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in parse_path(check.path)
    ]
    path = "".join(steps).lstrip(".")
    test = " || ".join(f"{path} == {_literal(value)}" for value in check.values) or f"has({path})"
    deny = check.negated != check.absent
    return f"{'!' if deny else ''}({test})" if deny or "||" in test else test
