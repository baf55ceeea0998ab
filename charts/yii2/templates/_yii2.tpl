{{/* The variables that templates of Yii 2 read, and the parts of DB_DSN. Takes: root, isEarly. */}}
{{- define "yii2.env" -}}
{{- include "php.databaseEnv" (dict "root" .root "names" (dict
  "host" "DB_HOST" "port" "DB_PORT" "name" "DB_NAME" "user" "DB_USERNAME" "password" "DB_PASSWORD")) }}
- name: DB_DSN
  value: {{ ternary "pgsql" "mysql" (eq .root.Values.database.engine "postgres") }}:host=$(DB_HOST);port=$(DB_PORT);dbname=$(DB_NAME)
{{- include "php.redisEnv" (dict "root" .root "isEarly" .isEarly "names" (dict
  "host" "REDIS_HOST" "port" "REDIS_PORT" "password" "REDIS_PASSWORD")) }}
{{- end }}

{{/* Values derived from other values. config.data takes precedence. */}}
{{- define "yii2.config" -}}
YII_ENV: prod
YII_DEBUG: "false"
{{- end }}
