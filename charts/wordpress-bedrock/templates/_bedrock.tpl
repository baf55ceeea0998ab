{{/* The variables that Bedrock reads. WordPress has one for host and port. Takes: root, isEarly. */}}
{{- define "bedrock.env" -}}
{{- include "php.databaseEnv" (dict "root" .root "names" (dict
  "host" "DB_SERVER" "port" "DB_PORT" "name" "DB_NAME" "user" "DB_USER" "password" "DB_PASSWORD")) }}
- name: DB_HOST
  value: $(DB_SERVER):$(DB_PORT)
{{- include "php.redisEnv" (dict "root" .root "isEarly" .isEarly "names" (dict
  "host" "WP_REDIS_HOST" "port" "WP_REDIS_PORT" "password" "WP_REDIS_PASSWORD")) }}
{{- end }}

{{/* Values derived from other values. config.data takes precedence. */}}
{{- define "bedrock.config" -}}
{{- $home := include "bedrock.home" . | trimSuffix "/" -}}
WP_ENV: production
WP_HOME: {{ $home }}
WP_SITEURL: {{ $home }}/wp
{{- if .Values.cron.enabled }}
DISABLE_WP_CRON: "true"
{{- end }}
{{- end }}

{{- define "bedrock.home" -}}
{{- if .Values.site.url }}
{{- .Values.site.url }}
{{- else if and .Values.ingress.enabled .Values.ingress.hosts }}
{{- printf "%s://%s" (ternary "https" "http" (not (empty .Values.ingress.tls))) (first .Values.ingress.hosts).host }}
{{- else }}
{{- printf "http://%s" (include "php.fullname" .) }}
{{- end }}
{{- end }}
