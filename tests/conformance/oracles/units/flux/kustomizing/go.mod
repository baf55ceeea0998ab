module github.com/fluxcd/kustomize-controller/oracle

go 1.26.3

require github.com/fluxcd/kustomize-controller v1.9.6
