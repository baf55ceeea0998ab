{{- define "broken.inner" -}}

{{ .Values.missing.deeper.still }}
{{- end -}}
