package main

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/kustomize-controller/internal/decryptor"
	"github.com/fluxcd/pkg/chartutil"
	generator "github.com/fluxcd/pkg/kustomize"
	"helm.sh/helm/v4/pkg/action"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/kustomize/api/krusty"
)

var _ = decryptor.New
var _ = generator.SecureBuild
var _ = chartutil.ChartValuesFromReferences
var _ = action.NewInstall
var _ kustomizev1.Kustomization
var _ helmv2.HelmRelease
var _ = fake.NewClientBuilder
var _ = krusty.MakeKustomizer

func main() {}
