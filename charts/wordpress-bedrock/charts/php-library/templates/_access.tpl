{{- define "php.ingress" -}}
{{- if .Values.ingress.enabled }}
apiVersion: networking.k8s.io/v1
kind: Ingress
{{ include "php.metadata" (dict
  "root" . "name" (include "php.fullname" .) "component" "web" "group" "application"
  "own" .Values.ingress.syncWave "annotations" .Values.ingress.annotations) }}
spec:
  {{- with .Values.ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with .Values.ingress.tls }}
  tls:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    {{- range .Values.ingress.hosts }}
    - host: {{ .host | quote }}
      http:
        paths:
          {{- range default (list (dict "path" "/")) .paths }}
          - path: {{ .path }}
            pathType: {{ default "Prefix" .pathType }}
            backend:
              service:
                name: {{ include "php.fullname" $ }}
                port:
                  name: http
          {{- end }}
    {{- end }}
{{- end }}
{{- end }}

{{- define "php.autoscaler" -}}
{{- if .Values.autoscaling.enabled }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
{{ include "php.metadata" (dict
  "root" . "name" (include "php.fullname" .) "component" "web" "group" "application"
  "own" .Values.autoscaling.syncWave "annotations" .Values.autoscaling.annotations) }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "php.fullname" . }}
  minReplicas: {{ int .Values.autoscaling.minReplicas }}
  maxReplicas: {{ int .Values.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ int .Values.autoscaling.targetCPUUtilizationPercentage }}
{{- end }}
{{- end }}

{{- define "php.disruptionBudget" -}}
{{- if .Values.podDisruptionBudget.enabled }}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "php.metadata" (dict
  "root" . "name" (include "php.fullname" .) "component" "web" "group" "application"
  "own" .Values.podDisruptionBudget.syncWave "annotations" .Values.podDisruptionBudget.annotations) }}
spec:
  maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "php.selector" (dict "root" . "component" "web") | nindent 6 }}
{{- end }}
{{- end }}

{{/* `helm test`: checks that the Service responds. It is not part of a rollout, so it has no wave. */}}
{{- define "php.connectionTest" -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "php.suffixed" (dict "root" . "suffix" "test-connection") }}
  labels:
    {{- include "php.labels" (dict "root" . "component" "test") | nindent 4 }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  containers:
    - name: wget
      image: {{ include "php.image" (dict "image" .Values.test.image) | quote }}
      command: [wget, --spider, --quiet, --timeout=10, {{ printf "http://%s:%d%s" (include "php.fullname" .) (int .Values.service.port) .Values.test.path | quote }}]
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
{{- end }}
