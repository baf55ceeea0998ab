{{/* The name of the application; a label, not the name of an object. */}}
{{- define "php.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name that all objects of a release start with. */}}
{{- define "php.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/*
The name of another object of the application. Only the part before the suffix is shortened.
Takes: root, suffix, limit (default 63).
*/}}
{{- define "php.suffixed" -}}
{{- $room := sub (default 63 .limit) (len .suffix | add1) | int }}
{{- printf "%s-%s" (include "php.fullname" .root | trunc $room | trimSuffix "-") .suffix }}
{{- end }}

{{/* The labels of a selector. Takes: root, component. */}}
{{- define "php.selector" -}}
app.kubernetes.io/name: {{ include "php.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The labels of an object. Takes: root, component, version (default: that of the application). */}}
{{- define "php.labels" -}}
{{- $version := .version | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" ($version | trunc 63 | regexFind "^.*[A-Za-z0-9]")
  "app.kubernetes.io/managed-by" .root.Release.Service
}}
{{- $selector := include "php.selector" . | fromYaml }}
{{- toYaml (merge dict $selector $own .root.Values.commonLabels) }}
{{- end }}

{{/*
The labels of a pod, without versions, so that a new version of the chart alone restarts no pod.
Takes: root, component.
*/}}
{{- define "php.podLabels" -}}
{{- $selector := include "php.selector" . | fromYaml }}
{{- toYaml (merge dict $selector .root.Values.podLabels .root.Values.commonLabels) }}
{{- end }}

{{/* The image of a container. Takes: image, tag (default tag of the image). */}}
{{- define "php.image" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (.image.tag | default .tag) }}
{{- end }}
{{- end }}

{{- define "php.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "php.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The ConfigMap of the application. */}}
{{- define "php.configName" -}}
{{- include "php.suffixed" (dict "root" . "suffix" "config") }}
{{- end }}

{{/* The Secret of the application: an existing one, one of the chart, or none. */}}
{{- define "php.secretName" -}}
{{- if .Values.secret.existingSecret }}
{{- .Values.secret.existingSecret }}
{{- else if .Values.secret.data }}
{{- include "php.suffixed" (dict "root" . "suffix" "secret") }}
{{- end }}
{{- end }}

{{/* The Secret of the database: created by the operator, or an existing one. */}}
{{- define "php.databaseSecretName" -}}
{{- if .Values.database.external.host }}
{{- .Values.database.external.existingSecret }}
{{- else }}
{{- printf "%s-db-credentials" (include "php.fullname" .) }}
{{- end }}
{{- end }}

{{- define "php.redisName" -}}
{{- include "php.suffixed" (dict "root" . "suffix" "redis") }}
{{- end }}

{{/* The Secret with the password of Redis; empty if Redis has no password. */}}
{{- define "php.redisSecretName" -}}
{{- if .Values.redis.external.host }}
{{- .Values.redis.external.existingSecret }}
{{- else if .Values.redis.auth.existingSecret }}
{{- .Values.redis.auth.existingSecret }}
{{- else if .Values.redis.auth.password }}
{{- include "php.redisName" . }}
{{- end }}
{{- end }}
