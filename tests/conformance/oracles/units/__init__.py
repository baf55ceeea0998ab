"""What Argo CD and Flux themselves render of every unit in tests/conformance/repositories/cases.

Argo CD's repository server is asked as a library, with the `helm` and `kustomize` that it calls.
Flux's kustomize-controller is asked as libraries: its generator, its decryptor, its substitution.
Of a HelmRelease the values are composed by Flux's package and rendered by Helm's; post-rendering
is Kustomize's.
"""
