{{/*
The wave of an object, as text. The annotation of the user takes precedence over the wave of the
template, and that over the wave of the group.
Takes: root, group (a key of syncWaves), own (a number or null), annotations (the user's).
*/}}
{{- define "php.wave" -}}
{{- $key := "argocd.argoproj.io/sync-wave" }}
{{- if hasKey (default dict .annotations) $key }}
{{- $said := get .annotations $key }}
{{- if not (regexMatch "^[+-]?[0-9]+$" $said) }}
{{- fail (printf "the sync wave `%s` of an annotation is not an integer" $said) }}
{{- end }}
{{- $said }}
{{- else if not (kindIs "invalid" .own) }}
{{- int .own }}
{{- else }}
{{- get (default dict .root.Values.syncWaves) .group | int }}
{{- end }}
{{- end }}

{{/*
The `annotations` of an object, or nothing if it has none. Later ones take precedence:
commonAnnotations, the wave, annotations of the chart, annotations of the user.
Takes: root, group, own, annotations, and chart (the chart's own annotations).
*/}}
{{- define "php.annotations" -}}
{{- $all := dict }}
{{- range $key, $value := .root.Values.commonAnnotations }}
{{- $_ := set $all $key $value }}
{{- end }}
{{- if (.root.Values.syncWaves).enabled }}
{{- $_ := set $all "argocd.argoproj.io/sync-wave" (include "php.wave" .) }}
{{- end }}
{{- range $more := list .chart .annotations }}
{{- range $key, $value := $more }}
{{- $_ := set $all $key $value }}
{{- end }}
{{- end }}
{{- with $all }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
The metadata of an object.
Takes the arguments of php.annotations, and: name, component.
*/}}
{{- define "php.metadata" -}}
metadata:
  name: {{ .name }}
  labels:
    {{- include "php.labels" . | nindent 4 }}
  {{- include "php.annotations" . | trim | nindent 2 | trimSuffix "\n  " }}
{{- end }}
