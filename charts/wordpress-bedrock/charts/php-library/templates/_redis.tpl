{{/* Takes: root, and the arguments of php.metadata except name and wave. */}}
{{- define "php.redisMetadata" -}}
{{- include "php.metadata" (merge (dict
  "name" (include "php.redisName" .root) "component" "redis" "group" "redis"
  "version" .root.Values.redis.image.tag) .) }}
{{- end }}

{{- define "php.redisSecret" -}}
{{- if and (include "php.hasRedis" .) .Values.redis.auth.password (not .Values.redis.auth.existingSecret) }}
apiVersion: v1
kind: Secret
{{ include "php.redisMetadata" (dict "root" . "annotations" .Values.redis.annotations) }}
type: Opaque
data:
  {{ .Values.redis.auth.key }}: {{ .Values.redis.auth.password | b64enc | quote }}
{{- end }}
{{- end }}

{{/* In the wave of the Deployment: only a pod binds a claim with WaitForFirstConsumer. */}}
{{- define "php.redisClaim" -}}
{{- with .Values.redis.persistence }}
{{- if and (include "php.hasRedis" $) .enabled (not .existingClaim) }}
{{- include "php.claim" (dict
  "root" $ "name" (include "php.redisName" $) "component" "redis" "group" "redis"
  "version" $.Values.redis.image.tag
  "annotations" (merge dict .annotations $.Values.redis.annotations) "persistence" .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "php.redisService" -}}
{{- if include "php.hasRedis" . }}
apiVersion: v1
kind: Service
{{ include "php.redisMetadata" (dict "root" . "annotations" .Values.redis.annotations) }}
spec:
  type: ClusterIP
  ports:
    - name: redis
      port: {{ int .Values.redis.service.port }}
      targetPort: redis
      protocol: TCP
  selector:
    {{- include "php.selector" (dict "root" . "component" "redis") | nindent 4 }}
{{- end }}
{{- end }}

{{/* Only pods of this release may connect to Redis. */}}
{{- define "php.redisNetworkPolicy" -}}
{{- if and (include "php.hasRedis" .) .Values.redis.networkPolicy.enabled }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "php.redisMetadata" (dict "root" . "annotations" .Values.redis.annotations) }}
spec:
  podSelector:
    matchLabels:
      {{- include "php.selector" (dict "root" . "component" "redis") | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - from:
        - podSelector:
            matchLabels:
              app.kubernetes.io/name: {{ include "php.name" . }}
              app.kubernetes.io/instance: {{ .Release.Name }}
      ports:
        - port: redis
          protocol: TCP
{{- end }}
{{- end }}

{{- define "php.redisDeployment" -}}
{{- if include "php.hasRedis" . }}
{{- $redis := .Values.redis }}
apiVersion: apps/v1
kind: Deployment
{{ include "php.redisMetadata" (dict "root" . "annotations" $redis.annotations) }}
spec:
  replicas: 1
  revisionHistoryLimit: {{ int .Values.deployment.revisionHistoryLimit }}
  strategy:
    type: Recreate # two cannot write to one volume
  selector:
    matchLabels:
      {{- include "php.selector" (dict "root" . "component" "redis") | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "php.podLabels" (dict "root" . "component" "redis") | nindent 8 }}
      {{- if and $redis.auth.password (not $redis.auth.existingSecret) }}
      annotations:
        checksum/secret: {{ $redis.auth.password | sha256sum }}
      {{- end }}
    spec:
      {{- include "php.redisPod" . | nindent 6 }}
{{- end }}
{{- end }}

{{- define "php.redisPod" -}}
{{- $redis := .Values.redis -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml $redis.podSecurityContext | nindent 2 }}
containers:
  - name: redis
    image: {{ include "php.image" (dict "image" $redis.image) | quote }}
    imagePullPolicy: {{ $redis.image.pullPolicy }}
    args:
      - --dir
      - /data
      - --appendonly
      - {{ ternary "yes" "no" $redis.persistence.enabled | quote }}
      {{- with include "php.redisSecretName" . }}
      - --requirepass
      - $(REDISCLI_AUTH)
      {{- end }}
      {{- with $redis.args }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with include "php.redisSecretName" . }}
    env:
      - name: REDISCLI_AUTH # redis-cli reads it, too
        valueFrom:
          secretKeyRef:
            name: {{ . }}
            key: {{ $redis.auth.key }}
    {{- end }}
    ports:
      - name: redis
        containerPort: 6379
        protocol: TCP
    startupProbe:
      {{- include "php.redisPing" . | nindent 6 }}
      periodSeconds: 2
      failureThreshold: 30
    readinessProbe:
      {{- include "php.redisPing" . | nindent 6 }}
      periodSeconds: 5
    livenessProbe:
      tcpSocket:
        port: redis
      periodSeconds: 10
    securityContext:
      {{- toYaml $redis.securityContext | nindent 6 }}
    {{- with $redis.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - name: data
        mountPath: /data
volumes:
  - name: data
    {{- if $redis.persistence.enabled }}
    persistentVolumeClaim:
      claimName: {{ default (include "php.redisName" .) $redis.persistence.existingClaim }}
    {{- else }}
    emptyDir: {}
    {{- end }}
{{- range $key := list "nodeSelector" "affinity" "tolerations" }}
{{- with get $redis $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* While Redis loads its file, it does not answer with PONG. */}}
{{- define "php.redisPing" -}}
exec:
  command: [sh, -c, redis-cli ping | grep -q PONG]
timeoutSeconds: 2
{{- end }}
