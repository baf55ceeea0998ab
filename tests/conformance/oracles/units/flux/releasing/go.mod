module github.com/fluxcd/helm-controller/oracle

go 1.26.3

require github.com/fluxcd/helm-controller v1.6.4
