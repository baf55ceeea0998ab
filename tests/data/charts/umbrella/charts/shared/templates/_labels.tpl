{{- define "shared.labels" -}}
team: shop
chart: {{ .Chart.Name }}
{{- end -}}
