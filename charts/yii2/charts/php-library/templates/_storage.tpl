{{/*
A claim for a volume.
Takes the arguments of php.metadata, and: persistence (size, accessModes, storageClassName).
*/}}
{{- define "php.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
{{ include "php.metadata" . }}
spec:
  accessModes:
    {{- toYaml .persistence.accessModes | nindent 4 }}
  {{- with .persistence.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .persistence.size }}
{{- end }}

{{- define "php.uploadsName" -}}
{{- include "php.suffixed" (dict "root" . "suffix" "uploads") }}
{{- end }}

{{/* In the wave of the Deployment: only a pod binds a claim with WaitForFirstConsumer. */}}
{{- define "php.uploadsClaim" -}}
{{- with .Values.uploads }}
{{- if and .enabled (not .existingClaim) }}
{{- include "php.claim" (dict
  "root" $ "name" (include "php.uploadsName" $) "component" "web"
  "own" (include "php.applicationWave" (dict "root" $ "part" $.Values.deployment) | int)
  "annotations" .annotations "persistence" .) }}
{{- end }}
{{- end }}
{{- end }}
