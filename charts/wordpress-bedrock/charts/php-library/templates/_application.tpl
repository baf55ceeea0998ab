{{- define "php.deployment" -}}
apiVersion: apps/v1
kind: Deployment
{{ include "php.metadata" (dict
  "root" . "name" (include "php.fullname" .) "component" "web" "group" "application"
  "own" .Values.deployment.syncWave "annotations" .Values.deployment.annotations) }}
spec:
  {{- if not .Values.autoscaling.enabled }}
  replicas: {{ int .Values.replicaCount }}
  {{- end }}
  revisionHistoryLimit: {{ int .Values.deployment.revisionHistoryLimit }}
  {{- with .Values.deployment.strategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "php.selector" (dict "root" . "component" "web") | nindent 6 }}
  template:
    {{- include "php.podTemplate" (dict
      "root" . "component" "web"
      "command" .Values.deployment.command "args" .Values.deployment.args "resources" .Values.resources
      "annotations" (include "php.podAnnotations" . | fromYaml)
      "more" (include "php.webContainer" .) "spec" (include "php.webPod" .)) | nindent 4 }}
{{- end }}

{{- define "php.webContainer" -}}
ports:
  - name: http
    containerPort: {{ int .Values.service.targetPort }}
    protocol: TCP
{{- range $probe := list "startupProbe" "readinessProbe" "livenessProbe" }}
{{- with get $.Values $probe }}
{{ $probe }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "php.webPod" -}}
terminationGracePeriodSeconds: {{ int .Values.deployment.terminationGracePeriodSeconds }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "php.service" -}}
apiVersion: v1
kind: Service
{{ include "php.metadata" (dict
  "root" . "name" (include "php.fullname" .) "component" "web" "group" "application"
  "own" .Values.service.syncWave "annotations" .Values.service.annotations) }}
spec:
  type: {{ .Values.service.type }}
  ports:
    - name: http
      port: {{ int .Values.service.port }}
      targetPort: http
      protocol: TCP
  selector:
    {{- include "php.selector" (dict "root" . "component" "web") | nindent 4 }}
{{- end }}

{{/* One Deployment for each of queue.workers. */}}
{{- define "php.queue" -}}
{{- if .Values.queue.enabled }}
{{- range $name, $worker := .Values.queue.workers }}
{{- $component := printf "queue-%s" $name }}
---
apiVersion: apps/v1
kind: Deployment
{{ include "php.metadata" (dict
  "root" $ "name" (include "php.suffixed" (dict "root" $ "suffix" $component)) "component" $component
  "group" "application" "own" $.Values.queue.syncWave "annotations" $.Values.queue.annotations) }}
spec:
  replicas: {{ hasKey $worker "replicas" | ternary $worker.replicas 1 | int }}
  revisionHistoryLimit: {{ int $.Values.deployment.revisionHistoryLimit }}
  selector:
    matchLabels:
      {{- include "php.selector" (dict "root" $ "component" $component) | nindent 6 }}
  template:
    {{- include "php.podTemplate" (dict
      "root" $ "component" $component "command" $worker.command "args" $worker.args
      "resources" (default $.Values.queue.resources $worker.resources)
      "annotations" (include "php.podAnnotations" $ | fromYaml)
      "spec" (printf "terminationGracePeriodSeconds: %d" (int $.Values.queue.terminationGracePeriodSeconds))) | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{/* One CronJob for each of cron.jobs. Its name is short, because names of Jobs end with a time. */}}
{{- define "php.cron" -}}
{{- if .Values.cron.enabled }}
{{- range $name, $job := .Values.cron.jobs }}
{{- $component := printf "cron-%s" $name }}
---
apiVersion: batch/v1
kind: CronJob
{{ include "php.metadata" (dict
  "root" $ "name" (include "php.suffixed" (dict "root" $ "suffix" $component "limit" 52)) "component" $component
  "group" "application" "own" $.Values.cron.syncWave "annotations" $.Values.cron.annotations) }}
spec:
  schedule: {{ $job.schedule | quote }}
  {{- with $.Values.cron.timeZone }}
  timeZone: {{ . }}
  {{- end }}
  concurrencyPolicy: {{ default "Forbid" $job.concurrencyPolicy }}
  startingDeadlineSeconds: {{ int $.Values.cron.startingDeadlineSeconds }}
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      backoffLimit: 0
      activeDeadlineSeconds: {{ default $.Values.cron.activeDeadlineSeconds $job.activeDeadlineSeconds | int }}
      template:
        {{- include "php.podTemplate" (dict
          "root" $ "component" $component "command" $job.command "args" $job.args
          "resources" (default $.Values.cron.resources $job.resources)
          "annotations" $.Values.podAnnotations "spec" "restartPolicy: Never") | nindent 8 }}
{{- end }}
{{- end }}
{{- end }}
