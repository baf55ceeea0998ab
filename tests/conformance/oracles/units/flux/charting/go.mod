module github.com/fluxcd/source-controller/oracle

go 1.26.3

require github.com/fluxcd/source-controller v1.9.6
