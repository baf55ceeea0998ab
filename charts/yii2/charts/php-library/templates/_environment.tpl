{{/*
The variables of the database, with the names that the application reads. All are required: a pod
cannot start until the operator has created the database and its ConfigMap.
Takes: root, names (host, port, name, user, password; each the name of a variable).
*/}}
{{- define "php.databaseEnv" -}}
{{- $secret := include "php.databaseSecretName" .root }}
{{- $values := .root.Values.database }}
{{- if $values.external.host }}
- name: {{ .names.host }}
  value: {{ $values.external.host | quote }}
- name: {{ .names.port }}
  value: {{ include "php.databasePort" .root | quote }}
{{- else }}
- name: {{ .names.host }}
  valueFrom:
    configMapKeyRef:
      name: {{ $secret }}
      key: DB_CONN
- name: {{ .names.port }}
  valueFrom:
    configMapKeyRef:
      name: {{ $secret }}
      key: DB_PORT
{{- end }}
{{- range $what, $key := include "php.databaseKeys" .root | fromYaml }}
- name: {{ get $.names $what }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ $key }}
{{- end }}
{{- end }}

{{/* The keys of the Secret depend on the engine. */}}
{{- define "php.databaseKeys" -}}
{{- with .Values.database }}
{{- if .external.host -}}
name: {{ .external.keys.name }}
user: {{ .external.keys.user }}
password: {{ .external.keys.password }}
{{- else if eq .engine "postgres" -}}
name: POSTGRES_DB
user: POSTGRES_USER
password: POSTGRES_PASSWORD
{{- else -}}
name: DB
user: USER
password: PASSWORD
{{- end }}
{{- end }}
{{- end }}

{{- define "php.databasePort" -}}
{{- if .Values.database.external.port }}
{{- int .Values.database.external.port }}
{{- else }}
{{- ternary 5432 3306 (eq .Values.database.engine "postgres") }}
{{- end }}
{{- end }}

{{/* Whether the chart deploys Redis. */}}
{{- define "php.hasRedis" -}}
{{- if and .Values.redis.enabled (not .Values.redis.external.host) }}true{{ end }}
{{- end }}

{{/* Whether the application uses Redis, of the chart or external. */}}
{{- define "php.usesRedis" -}}
{{- if or .Values.redis.enabled .Values.redis.external.host }}true{{ end }}
{{- end }}

{{/*
The variables of Redis.
Takes: root, names (host, port, password), isEarly (before the chart's own Redis exists).
*/}}
{{- define "php.redisEnv" -}}
{{- if include "php.usesRedis" .root }}
{{- $redis := .root.Values.redis }}
- name: {{ .names.host }}
  value: {{ default (include "php.redisName" .root) $redis.external.host | quote }}
- name: {{ .names.port }}
  value: {{ ternary $redis.external.port $redis.service.port (not (empty $redis.external.host)) | int | quote }}
{{- with include "php.redisSecretName" .root }}
- name: {{ $.names.password }}
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ ternary $redis.external.key $redis.auth.key (not (empty $redis.external.host)) }}
      {{- if and $.isEarly (include "php.hasRedis" $.root) }}
      optional: true
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
All environment variables of a container of the application. The chart defines them in
the templates `<framework>.env`, which takes root and isEarly, and `<framework>.config`.
Takes: root, isEarly (a hook that runs before everything else has its own ConfigMap and Secret).
*/}}
{{- define "php.environment" -}}
{{- $root := .root }}
{{- $config := include "php.configName" $root }}
{{- $secret := include "php.secretName" $root }}
{{- if .isEarly }}
{{- $config = include "php.suffixed" (dict "root" $root "suffix" "migrate-config") }}
{{- if not $root.Values.secret.existingSecret }}
{{- $secret = ternary (include "php.suffixed" (dict "root" $root "suffix" "migrate-secret")) "" (not (empty $secret)) }}
{{- end }}
{{- end -}}
envFrom:
  - configMapRef:
      name: {{ $config }}
  {{- with $secret }}
  - secretRef:
      name: {{ . }}
  {{- end }}
  {{- with $root.Values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  {{- include (printf "%s.env" (include "php.framework" $root)) . | trim | nindent 2 }}
  {{- with $root.Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Not the name of the chart, which an alias changes. */}}
{{- define "php.framework" -}}
{{- index .Chart.Annotations "php-library/framework" }}
{{- end }}

{{/* The contents of the ConfigMap: those of the chart, overridden by those of the user. */}}
{{- define "php.configData" -}}
{{- $all := include (printf "%s.config" (include "php.framework" .)) . | fromYaml }}
{{- range $key, $value := .Values.config.data }}
{{- $_ := set $all $key $value }}
{{- end }}
{{- toYaml $all }}
{{- end }}
