{{/*
The migration. The pod template of a Job is immutable, so the name of the Job has a hash of it: the
same values result in the same Job, and another image results in another Job. A hook keeps its name,
because Argo CD and Helm delete the old hook first.
*/}}
{{- define "php.migration" -}}
{{- $moment := include "php.migrationMoment" . }}
{{- if ne $moment "never" }}
{{- $spec := include "php.migrationSpec" (dict "root" . "isEarly" (eq $moment "before")) }}
{{- $name := include "php.migrationName" (dict "root" . "spec" $spec) }}
{{- if eq $moment "before" }}
{{- include "php.migrationCompany" . }}
---
{{- end }}
apiVersion: batch/v1
kind: Job
{{ include "php.metadata" (dict
  "root" . "name" $name "component" "migration" "group" "migration"
  "chart" (include "php.migrationHook" . | fromYaml) "annotations" .Values.migration.annotations) }}
spec:
  {{- $spec | nindent 2 }}
{{- end }}
{{- end }}

{{/* Takes: root, spec. */}}
{{- define "php.migrationName" -}}
{{- $isHook := or .root.Values.migration.hook
  (hasKey .root.Values.migration.annotations "argocd.argoproj.io/hook")
  (hasKey .root.Values.migration.annotations "helm.sh/hook") }}
{{- if $isHook }}
{{- include "php.suffixed" (dict "root" .root "suffix" "migrate") }}
{{- else }}
{{- $hash := printf "%s\n%s" .spec .root.Values.migration.revision | sha256sum | trunc 8 }}
{{- include "php.suffixed" (dict "root" .root "suffix" (printf "migrate-%s" $hash)) }}
{{- end }}
{{- end }}

{{/* Takes: root, isEarly. */}}
{{- define "php.migrationSpec" -}}
{{- $values := .root.Values.migration -}}
backoffLimit: {{ int $values.backoffLimit }}
activeDeadlineSeconds: {{ int $values.activeDeadlineSeconds }}
{{- if not (kindIs "invalid" $values.ttlSecondsAfterFinished) }}
ttlSecondsAfterFinished: {{ int $values.ttlSecondsAfterFinished }}
{{- end }}
template:
  {{- include "php.podTemplate" (dict
    "root" .root "component" "migration" "isEarly" .isEarly
    "command" $values.command "args" $values.args "resources" $values.resources
    "annotations" .root.Values.podAnnotations
    "spec" "restartPolicy: Never") | nindent 2 }}
{{- end }}

{{/*
The configuration of a migration that runs before everything else: copies of the application's objects,
as hooks, one wave or weight before the migration.
*/}}
{{- define "php.migrationCompany" -}}
{{- $hook := dict }}
{{- range $key, $value := merge dict .Values.migration.annotations (include "php.migrationHook" . | fromYaml) }}
{{- if or (hasPrefix "argocd.argoproj.io/hook" $key) (hasPrefix "helm.sh/hook" $key) }}
{{- $_ := set $hook $key $value }}
{{- end }}
{{- end }}
{{- if hasKey $hook "argocd.argoproj.io/hook" }}
{{- $_ := set $hook "argocd.argoproj.io/hook-delete-policy" "BeforeHookCreation" }}
{{- end }}
{{- if hasKey $hook "helm.sh/hook" }}
{{- $_ := set $hook "helm.sh/hook-delete-policy" "before-hook-creation" }}
{{- $_ := set $hook "helm.sh/hook-weight" (sub (get $hook "helm.sh/hook-weight" | default "0" | int) 1 | toString) }}
{{- end }}
{{- $wave := sub (include "php.migrationWave" . | int) 1 }}
{{- if .Values.serviceAccount.create }}
{{- include "php.serviceAccountNamed" (dict
  "root" . "name" (include "php.suffixed" (dict "root" . "suffix" "migrate")) "own" $wave "chart" $hook) }}
---
{{- end }}
{{- include "php.configNamed" (dict
  "root" . "name" (include "php.suffixed" (dict "root" . "suffix" "migrate-config")) "own" $wave "chart" $hook) | nindent 0 }}
{{- if and .Values.secret.data (not .Values.secret.existingSecret) }}
---
{{- include "php.secretNamed" (dict
  "root" . "name" (include "php.suffixed" (dict "root" . "suffix" "migrate-secret")) "own" $wave "chart" $hook) | nindent 0 }}
{{- end }}
{{- end }}
