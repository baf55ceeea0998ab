module tidegate.dev/tests/support/sealing

go 1.26

require (
	github.com/bitnami-labs/sealed-secrets v0.27.1
	k8s.io/client-go v0.30.3
)

require (
	golang.org/x/crypto v0.25.0 // indirect
	golang.org/x/sys v0.22.0 // indirect
)
