{{/* The Database. Its operator creates the Secret and the ConfigMap that pods wait for. */}}
{{- define "php.database" -}}
{{- if not .Values.database.external.host }}
apiVersion: kinda.rocks/v1beta1
kind: Database
{{ include "php.metadata" (dict
  "root" . "name" (include "php.fullname" .) "component" "database"
  "group" "database" "annotations" .Values.database.annotations) }}
spec:
  secretName: {{ include "php.databaseSecretName" . }}
  instance: {{ .Values.database.instance }}
  deletionProtected: {{ .Values.database.deletionProtected }}
  cleanup: {{ .Values.database.cleanup }}
  backup:
    enable: {{ .Values.database.backup.enable }}
    cron: {{ .Values.database.backup.cron | quote }}
  {{- if and (eq .Values.database.engine "postgres") .Values.database.postgres }}
  postgres:
    {{- toYaml .Values.database.postgres | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
