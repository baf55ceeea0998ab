{{- define "library.name" -}}x{{- end -}}
