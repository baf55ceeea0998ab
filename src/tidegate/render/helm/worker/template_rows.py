"""Go templates without a chart: each becomes a template of an internal chart, rendered per row.

Runs in the worker. The texts are returned as JSON, which keeps what Helm would remove.
"""

from __future__ import annotations

import msgspec

from tidegate.model.units.chart_request import GoTemplateRequest
from tidegate.render.helm.worker import sdk

CHART_NAME = "texts"
RESULT_PATH = f"{CHART_NAME}/templates/all.json"
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


def render(request: GoTemplateRequest) -> tuple[tuple[str, ...], ...]:
    """Return each text for each row of parameters."""
    names = [f"{CHART_NAME}/templates/_{number}.tpl" for number in range(len(request.texts))]
    cells = ",".join(f'{{{{ include "{name}" $row | toJson }}}}' for name in names)
    files = {
        f"{CHART_NAME}/Chart.yaml": f"apiVersion: v2\nname: {CHART_NAME}\nversion: 0.1.0\n",
        f"{CHART_NAME}/templates/_functions.tpl": FUNCTIONS,
        RESULT_PATH: f"[{{{{ range $at, $row := .Values.rows }}}}{{{{ if $at }}}},{{{{ end }}}}"
        f"[{cells}]{{{{ end }}}}]",
        **dict(zip(names, request.texts, strict=True)),
    }
    with sdk.load_chart_files(files) as chart:
        rendered = sdk.render_strictly(chart, {"rows": [*request.params]}, strict=request.strict)
    return msgspec.json.decode(rendered[RESULT_PATH], type=tuple[tuple[str, ...], ...])
