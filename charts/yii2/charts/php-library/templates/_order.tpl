{{/*
When the migration runs: `never`, `before` everything else, in its `wave`, or `after` everything else.
This depends on the hook, from migration.hook or from the annotations of the user.
*/}}
{{- define "php.migrationMoment" -}}
{{- $notes := include "php.migrationHook" . | fromYaml }}
{{- range $key, $value := .Values.migration.annotations }}
{{- $_ := set $notes $key $value }}
{{- end }}
{{- $argo := get $notes "argocd.argoproj.io/hook" }}
{{- $helm := get $notes "helm.sh/hook" }}
{{- if not .Values.migration.enabled -}}
never
{{- else if or (regexMatch "\\bPreSync\\b" $argo) (regexMatch "\\bpre-(install|upgrade)\\b" $helm) -}}
before
{{- else if or (regexMatch "\\bPostSync\\b" $argo) (and (not $argo) (regexMatch "\\bpost-(install|upgrade)\\b" $helm)) -}}
after
{{- else -}}
wave
{{- end }}
{{- end }}

{{/* The annotations for migration.hook. */}}
{{- define "php.migrationHook" -}}
{{- if eq .Values.migration.hook "argocd" -}}
argocd.argoproj.io/hook: PreSync
argocd.argoproj.io/hook-delete-policy: BeforeHookCreation
{{- else if eq .Values.migration.hook "helm" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-delete-policy: before-hook-creation
helm.sh/hook-weight: "0"
{{- end }}
{{- end }}

{{- define "php.migrationWave" -}}
{{- include "php.wave" (dict "root" . "group" "migration" "annotations" .Values.migration.annotations) }}
{{- end }}

{{- define "php.databaseWave" -}}
{{- include "php.wave" (dict "root" . "group" "database" "annotations" .Values.database.annotations) }}
{{- end }}

{{- define "php.redisWave" -}}
{{- include "php.wave" (dict "root" . "group" "redis" "annotations" .Values.redis.annotations) }}
{{- end }}

{{/* The wave of a workload of the application. Takes: root, part (a section of the values). */}}
{{- define "php.applicationWave" -}}
{{- include "php.wave" (dict "root" .root "group" "application" "own" .part.syncWave "annotations" .part.annotations) }}
{{- end }}

{{/* The workloads that need configuration, database and Redis, and their waves. */}}
{{- define "php.users" -}}
{{- if eq (include "php.migrationMoment" .) "wave" }}
the migration: {{ include "php.migrationWave" . }}
{{- end }}
the Deployment: {{ include "php.applicationWave" (dict "root" . "part" .Values.deployment) }}
{{- with .Values.queue }}
{{- if .enabled }}
the queue workers: {{ include "php.applicationWave" (dict "root" $ "part" .) }}
{{- end }}
{{- end }}
{{- if .Values.cron.enabled }}
the cron jobs: {{ include "php.applicationWave" (dict "root" . "part" .Values.cron) }}
{{- end }}
{{- end }}

{{/* The wave of ConfigMap, Secret and ServiceAccount: one before the first workload that uses them. */}}
{{- define "php.configWave" -}}
{{- $first := include "php.applicationWave" (dict "root" . "part" .Values.deployment) | int }}
{{- range $name, $wave := include "php.users" . | fromYaml }}
{{- $first = min $first ($wave | int) }}
{{- end }}
{{- sub $first 1 }}
{{- end }}

{{/*
Reject values that can never work. A wave starts when the previous one is healthy, so an object that
needs an object of a later wave waits forever.
*/}}
{{- define "php.checks" -}}
{{- include "php.checkExternal" . }}
{{- include "php.checkHook" . }}
{{- if (.Values.syncWaves).enabled }}
{{- $database := include "php.databaseWave" . | int }}
{{- $redis := include "php.redisWave" . | int }}
{{- if eq (include "php.migrationMoment" .) "wave" }}
{{- $migration := include "php.migrationWave" . | int }}
{{- if and (not .Values.database.external.host) (le $migration $database) }}
{{- fail (printf "the migration is in wave %d and its database in wave %d: the migration must come after the database. Set syncWaves.database to a number below syncWaves.migration" $migration $database) }}
{{- end }}
{{- if and (include "php.hasRedis" .) (le $migration $redis) }}
{{- fail (printf "the migration is in wave %d and Redis in wave %d: the migration must come after Redis. Set syncWaves.redis to a number below syncWaves.migration" $migration $redis) }}
{{- end }}
{{- end }}
{{- range $name, $wave := include "php.users" . | fromYaml }}
{{- $wave = $wave | int }}
{{- if and (not $.Values.database.external.host) (lt $wave $database) }}
{{- fail (printf "the database is in wave %d, but %s in wave %d must come after it: set syncWaves.database to a lower number" $database $name $wave) }}
{{- end }}
{{- if and (include "php.hasRedis" $) (lt $wave $redis) }}
{{- fail (printf "Redis is in wave %d, but %s in wave %d must come after it: set syncWaves.redis to a lower number" $redis $name $wave) }}
{{- end }}
{{- range $part := list "config" "secret" "serviceAccount" }}
{{- $own := index $.Values $part "syncWave" }}
{{- if and (not (kindIs "invalid" $own)) (lt $wave (int $own)) }}
{{- fail (printf "%s.syncWave is %d, but %s in wave %d must come after it: set it to a lower number" $part (int $own) $name $wave) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "php.checkExternal" -}}
{{- with .Values.database.external }}
{{- if and .host (not .existingSecret) }}
{{- fail "database.external.host is set without database.external.existingSecret: set it to the Secret with the user and the password" }}
{{- end }}
{{- end }}
{{- end }}

{{/* A hook runs before every wave, and so before the database is created. */}}
{{- define "php.checkHook" -}}
{{- $isEarly := eq (include "php.migrationMoment" .) "before" }}
{{- if and $isEarly (not .Values.database.external.host) (not .Values.migration.allowHookBeforeDatabase) }}
{{- fail "a migration that is a hook runs before its Database exists: set migration.hook to \"\" and no hook in migration.annotations, or set database.external.host, or migration.allowHookBeforeDatabase" }}
{{- end }}
{{- end }}
