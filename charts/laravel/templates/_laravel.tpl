{{/* The variables that the configuration of Laravel reads. Takes: root, isEarly. */}}
{{- define "laravel.env" -}}
{{- include "php.databaseEnv" (dict "root" .root "names" (dict
  "host" "DB_HOST" "port" "DB_PORT" "name" "DB_DATABASE" "user" "DB_USERNAME" "password" "DB_PASSWORD")) }}
{{- include "php.redisEnv" (dict "root" .root "isEarly" .isEarly "names" (dict
  "host" "REDIS_HOST" "port" "REDIS_PORT" "password" "REDIS_PASSWORD")) }}
{{- end }}

{{/* Values derived from other values. config.data takes precedence. */}}
{{- define "laravel.config" -}}
APP_ENV: production
APP_DEBUG: "false"
LOG_CHANNEL: stderr
DB_CONNECTION: {{ ternary "pgsql" "mysql" (eq .Values.database.engine "postgres") }}
{{- if include "php.usesRedis" . }}
CACHE_STORE: redis
QUEUE_CONNECTION: redis
SESSION_DRIVER: redis
{{- end }}
{{- end }}
