{{/* The notes after `helm install`. Takes: root, needed (names of secrets that the application needs). */}}
{{- define "php.notes" -}}
{{- $root := .root -}}
{{ include "php.fullname" $root }} is being deployed.
{{ if not $root.Values.database.external.host }}
Its pods wait until the operator has created the Secret {{ include "php.databaseSecretName" $root }}:
  kubectl --namespace {{ $root.Release.Namespace }} get database {{ include "php.fullname" $root }}
{{ end }}
{{- if eq (include "php.migrationMoment" $root) "wave" }}
Helm does not support waves: pods are restarted until their dependencies exist.
{{ end }}
{{- if $root.Values.ingress.enabled }}
{{- range $root.Values.ingress.hosts }}
  http{{ if $root.Values.ingress.tls }}s{{ end }}://{{ .host }}
{{- end }}
{{ else }}
To open it:
  kubectl --namespace {{ $root.Release.Namespace }} port-forward service/{{ include "php.fullname" $root }} 8080:{{ int $root.Values.service.port }}
{{ end }}
{{- if not $root.Values.secret.existingSecret }}
{{- range .needed }}
{{- if not (hasKey $root.Values.secret.data .) }}
WARNING: {{ . }} is not set. Set it in secret.data, or name a Secret that contains it in secret.existingSecret.
{{- end }}
{{- end }}
{{- end }}
{{- if and (include "php.hasRedis" $root) (not (include "php.redisSecretName" $root)) }}
WARNING: Redis requires no password. Set redis.auth.password or redis.auth.existingSecret.
{{- end }}
{{- end }}
