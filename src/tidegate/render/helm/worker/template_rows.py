"""Templates that are no chart's: each becomes one of a chart of ours, rendered once for each row.

Runs in the worker. The texts come back in JSON, which keeps what Helm would take out of them.
"""

from __future__ import annotations

import msgspec

from tidegate.model.units.chart_request import GoTemplateRequest
from tidegate.render.helm.worker import sdk

CHART = "texts"
ALL = f"{CHART}/templates/all.json"
FUNCTIONS = """
{{- define "tidegate.normalize" -}}
{{- regexReplaceAll "[^-a-z0-9.]" (lower .) "-" | trunc 253 | trimAll "-." -}}
{{- end -}}
{{- define "tidegate.slugify" -}}
{{- $most := 50 }}{{ $smart := true }}
{{- if gt (len .) 1 }}{{ $most = index . 0 }}{{ end }}
{{- if gt (len .) 2 }}{{ $smart = index . 1 }}{{ end }}
{{- $slug := include "tidegate.normalize" (last .) }}
{{- if not $smart }}{{ $slug = trunc $most $slug }}{{ end }}
{{- $slug = regexReplaceAll "-+" (regexReplaceAll "[^a-z0-9-]" $slug "-") "-" | trimAll "-" }}
{{- if and $smart (gt $most 0) (gt (len $slug) $most) }}
{{- $head := trunc (int (add $most 1)) $slug }}
{{- if contains "-" $head }}{{ $slug = regexReplaceAll "-[^-]*$" $head "" }}
{{- else }}{{ $slug = trunc $most $slug }}{{ end }}
{{- end }}
{{- $slug -}}
{{- end -}}
"""


def render(asked: GoTemplateRequest) -> tuple[tuple[str, ...], ...]:
    """For each row of parameters each text."""
    names = [f"{CHART}/templates/_{number}.tpl" for number in range(len(asked.texts))]
    cells = ",".join(f'{{{{ include "{name}" $row | toJson }}}}' for name in names)
    files = {
        f"{CHART}/Chart.yaml": f"apiVersion: v2\nname: {CHART}\nversion: 0.1.0\n",
        f"{CHART}/templates/_functions.tpl": FUNCTIONS,
        ALL: f"[{{{{ range $at, $row := .Values.rows }}}}{{{{ if $at }}}},{{{{ end }}}}"
        f"[{cells}]{{{{ end }}}}]",
        **dict(zip(names, asked.texts, strict=True)),
    }
    with sdk.load_chart_files(files) as chart:
        made = sdk.render_strictly(chart, {"rows": [*asked.params]}, strict=asked.strict)
    return msgspec.json.decode(made[ALL], type=tuple[tuple[str, ...], ...])
