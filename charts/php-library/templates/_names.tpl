{{/* The name of the application; a label, not the name of an object. */}}
{{- define "php.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name that all objects of a release begin with. */}}
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
The name of an object beside the application. Of a long name the beginning is cut, never the suffix.
Takes: root, suffix, limit (63 if it is not there).
*/}}
{{- define "php.suffixed" -}}
{{- $room := sub (default 63 .limit) (len .suffix | add1) | int }}
{{- printf "%s-%s" (include "php.fullname" .root | trunc $room | trimSuffix "-") .suffix }}
{{- end }}

{{/* What a selector matches. Takes: root, component. */}}
{{- define "php.selector" -}}
app.kubernetes.io/name: {{ include "php.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The labels of an object. Takes: root, component, version (the application's if it is not there). */}}
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
The labels of a pod: no versions, so that a new version of the chart alone starts no pod anew.
Takes: root, component.
*/}}
{{- define "php.podLabels" -}}
{{- $selector := include "php.selector" . | fromYaml }}
{{- toYaml (merge dict $selector .root.Values.podLabels .root.Values.commonLabels) }}
{{- end }}

{{/* The image of a container. Takes: image, tag (what counts if the image has none). */}}
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

{{/* The Secret of the application: one that exists, one that is made, or none. */}}
{{- define "php.secretName" -}}
{{- if .Values.secret.existingSecret }}
{{- .Values.secret.existingSecret }}
{{- else if .Values.secret.data }}
{{- include "php.suffixed" (dict "root" . "suffix" "secret") }}
{{- end }}
{{- end }}

{{/* The Secret of the database: the operator makes it, or it is there already. */}}
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

{{/* The Secret that holds the password of Redis, or nothing if it has none. */}}
{{- define "php.redisSecretName" -}}
{{- if .Values.redis.external.host }}
{{- .Values.redis.external.existingSecret }}
{{- else if .Values.redis.auth.existingSecret }}
{{- .Values.redis.auth.existingSecret }}
{{- else if .Values.redis.auth.password }}
{{- include "php.redisName" . }}
{{- end }}
{{- end }}
