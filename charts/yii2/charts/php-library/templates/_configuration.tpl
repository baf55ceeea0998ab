{{- define "php.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- include "php.serviceAccountNamed" (dict
  "root" . "name" (include "php.serviceAccountName" .)
  "own" (include "php.ownConfigWave" (dict "root" . "part" .Values.serviceAccount) | int)) }}
{{- end }}
{{- end }}

{{- define "php.config" -}}
{{- include "php.configNamed" (dict
  "root" . "name" (include "php.configName" .)
  "own" (include "php.ownConfigWave" (dict "root" . "part" .Values.config) | int)) }}
{{- end }}

{{- define "php.secret" -}}
{{- if and .Values.secret.data (not .Values.secret.existingSecret) }}
{{- include "php.secretNamed" (dict
  "root" . "name" (include "php.secretName" .)
  "own" (include "php.ownConfigWave" (dict "root" . "part" .Values.secret) | int)) }}
{{- end }}
{{- end }}

{{/* Takes: root, part (a section of the values, which may have its own wave). */}}
{{- define "php.ownConfigWave" -}}
{{- if kindIs "invalid" .part.syncWave }}
{{- include "php.configWave" .root }}
{{- else }}
{{- int .part.syncWave }}
{{- end }}
{{- end }}

{{/* Takes: root, name, own (its wave), chart (the chart's own annotations). */}}
{{- define "php.serviceAccountNamed" -}}
apiVersion: v1
kind: ServiceAccount
{{ include "php.metadata" (merge (dict "component" "web" "annotations" .root.Values.serviceAccount.annotations) .) }}
automountServiceAccountToken: false
{{- end }}

{{/* Takes the arguments of php.serviceAccountNamed. */}}
{{- define "php.configNamed" -}}
apiVersion: v1
kind: ConfigMap
{{ include "php.metadata" (merge (dict "component" "web" "annotations" .root.Values.config.annotations) .) }}
data:
  {{- include "php.configData" .root | nindent 2 }}
{{- end }}

{{/* Takes the arguments of php.serviceAccountNamed. */}}
{{- define "php.secretNamed" -}}
apiVersion: v1
kind: Secret
{{ include "php.metadata" (merge (dict "component" "web" "annotations" .root.Values.secret.annotations) .) }}
type: Opaque
data:
  {{- range $key, $value := .root.Values.secret.data }}
  {{ $key }}: {{ $value | b64enc | quote }}
  {{- end }}
{{- end }}
