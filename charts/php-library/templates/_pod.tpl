{{/*
The template of a pod of the application.
Takes: root, component, command, args, resources, isEarly, and
  more         additional YAML of the container: ports and probes
  spec         additional YAML of the pod
  annotations  of the pod
*/}}
{{- define "php.podTemplate" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "php.podLabels" . | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "php.podAccount" . }}
  automountServiceAccountToken: false
  {{- with .spec }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml $root.Values.podSecurityContext | nindent 4 }}
  containers:
    - name: {{ .component }}
      image: {{ include "php.image" (dict "image" $root.Values.image "tag" $root.Chart.AppVersion) | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      {{- with .command }}
      command:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .args }}
      args:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- include "php.environment" (dict "root" $root "isEarly" .isEarly) | nindent 6 }}
      {{- with .more }}
      {{- . | nindent 6 }}
      {{- end }}
      securityContext:
        {{- toYaml $root.Values.securityContext | nindent 8 }}
      {{- with .resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with include "php.mounts" . }}
      volumeMounts:
        {{- . | nindent 8 }}
      {{- end }}
  {{- with include "php.volumes" . }}
  volumes:
    {{- . | nindent 4 }}
  {{- end }}
  {{- range $key := list "nodeSelector" "affinity" "tolerations" }}
  {{- with get $root.Values $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end }}

{{/* A hook that runs before everything else has its own ServiceAccount, if the chart creates one. */}}
{{- define "php.podAccount" -}}
{{- if and .isEarly .root.Values.serviceAccount.create }}
{{- include "php.suffixed" (dict "root" .root "suffix" "migrate") }}
{{- else }}
{{- include "php.serviceAccountName" .root }}
{{- end }}
{{- end }}

{{/*
Whether a pod mounts the volume for uploads. The migration does not: its wave is before that of the
claim, which is bound only when a pod of its own wave uses it.
Takes: root, component.
*/}}
{{- define "php.mountsUploads" -}}
{{- with .root.Values.uploads }}
{{- if and .enabled (ne $.component "migration") }}true{{ end }}
{{- end }}
{{- end }}

{{/* Takes: root, component. */}}
{{- define "php.mounts" -}}
{{- $mounts := .root.Values.extraVolumeMounts }}
{{- if include "php.mountsUploads" . }}
{{- $mounts = prepend $mounts (dict "name" "uploads" "mountPath" .root.Values.uploads.mountPath) }}
{{- end }}
{{- with $mounts }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Takes: root, component. */}}
{{- define "php.volumes" -}}
{{- $volumes := .root.Values.extraVolumes }}
{{- if include "php.mountsUploads" . }}
{{- $claim := .root.Values.uploads.existingClaim | default (include "php.uploadsName" .root) }}
{{- $volumes = prepend $volumes (dict "name" "uploads" "persistentVolumeClaim" (dict "claimName" $claim)) }}
{{- end }}
{{- with $volumes }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/*
Checksums of the configuration, so that changed values restart the pods. They cover only the values,
so that a changed wave restarts nothing.
*/}}
{{- define "php.podAnnotations" -}}
{{- $all := dict "checksum/config" (include "php.configData" . | sha256sum) }}
{{- if and .Values.secret.data (not .Values.secret.existingSecret) }}
{{- $_ := set $all "checksum/secret" (toYaml .Values.secret.data | sha256sum) }}
{{- end }}
{{- range $key, $value := .Values.podAnnotations }}
{{- $_ := set $all $key $value }}
{{- end }}
{{- toYaml $all }}
{{- end }}
