{{/*
When the migration runs: `never`, `before` everything else, in its `wave`, or `after` everything else.
A hook decides that, whether the chart made it of migration.hook or the user wrote its annotations.
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

{{/* The annotations that migration.hook stands for. */}}
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

{{/* The wave of everything of the application that runs. Takes: root, part (a part of the values). */}}
{{- define "php.applicationWave" -}}
{{- include "php.wave" (dict "root" .root "group" "application" "own" .part.syncWave "annotations" .part.annotations) }}
{{- end }}

{{/* Those that need configuration, database and Redis: what they are called, and their waves. */}}
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

{{/* One wave before the first that uses it: where ConfigMap, Secret and ServiceAccount belong. */}}
{{- define "php.configWave" -}}
{{- $first := include "php.applicationWave" (dict "root" . "part" .Values.deployment) | int }}
{{- range $name, $wave := include "php.users" . | fromYaml }}
{{- $first = min $first ($wave | int) }}
{{- end }}
{{- sub $first 1 }}
{{- end }}

{{/*
Refuse what cannot come up. A wave begins when the one before it is healthy: whatever needs
something of a later wave waits for it, and it for them.
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
{{- fail (printf "the database is in wave %d, and %s in need of it in wave %d already: set syncWaves.database to a lower number" $database $name $wave) }}
{{- end }}
{{- if and (include "php.hasRedis" $) (lt $wave $redis) }}
{{- fail (printf "Redis is in wave %d, and %s in need of it in wave %d already: set syncWaves.redis to a lower number" $redis $name $wave) }}
{{- end }}
{{- range $part := list "config" "secret" "serviceAccount" }}
{{- $own := index $.Values $part "syncWave" }}
{{- if and (not (kindIs "invalid" $own)) (lt $wave (int $own)) }}
{{- fail (printf "%s.syncWave is %d, and %s in need of it in wave %d already: set it to a lower number" $part (int $own) $name $wave) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "php.checkExternal" -}}
{{- with .Values.database.external }}
{{- if and .host (not .existingSecret) }}
{{- fail "database.external.host is set: say in database.external.existingSecret which Secret holds the user and the password" }}
{{- end }}
{{- end }}
{{- end }}

{{/* A hook runs before every wave, and so before the database is made. */}}
{{- define "php.checkHook" -}}
{{- $isEarly := eq (include "php.migrationMoment" .) "before" }}
{{- if and $isEarly (not .Values.database.external.host) (not .Values.migration.allowHookBeforeDatabase) }}
{{- fail "a migration that is a hook runs before its Database is made: set migration.hook to \"\" and no hook in migration.annotations, or set database.external.host, or migration.allowHookBeforeDatabase" }}
{{- end }}
{{- end }}
