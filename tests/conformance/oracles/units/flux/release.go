package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	releasing "github.com/fluxcd/helm-controller/oracle"
	"github.com/fluxcd/pkg/chartutil"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	charting "github.com/fluxcd/source-controller/oracle"
)

const kubeVersion = "v1.36.0"

// release renders a HelmRelease as a first installation would.
func release(ctx context.Context, kube client.Client, asked question) ([]*unstructured.Unstructured, error) {
	var wanted helmv2.HelmRelease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(asked.Unit.Object, &wanted); err != nil {
		return nil, err
	}
	archive, err := packed(ctx, asked, &wanted)
	if err != nil {
		return nil, err
	}
	defer os.Remove(archive)
	chart, err := loader.Load(archive)
	if err != nil {
		return nil, err
	}
	values, err := chartutil.ChartValuesFromReferences(
		ctx, logr.Discard(), kube, wanted.Namespace, wanted.GetValues(), wanted.Spec.ValuesFrom...)
	if err != nil {
		return nil, err
	}
	version, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	install := action.NewInstall(new(action.Configuration))
	install.DryRunStrategy = action.DryRunClient
	install.KubeVersion = version
	install.ReleaseName = releasing.Name(&wanted)
	install.Namespace = wanted.GetReleaseNamespace()
	install.PostRenderer = releasing.PostRenderer(&wanted)
	install.PostRenderStrategy = action.PostRenderStrategy(wanted.GetPostRenderStrategy())
	made, err := install.RunWithContext(ctx, chart, values.AsMap())
	if err != nil {
		return nil, err
	}
	text := &bytes.Buffer{}
	for _, one := range chart.CRDObjects() {
		if wanted.GetInstall().CRDs == helmv2.Skip {
			break
		}
		text.WriteString("---\n")
		text.Write(one.File.Data)
		text.WriteString("\n")
	}
	stored := made.(*releasev1.Release)
	text.WriteString(stored.Manifest)
	for _, hook := range stored.Hooks {
		text.WriteString("\n---\n" + hook.Manifest)
	}
	return ssautil.ReadObjects(text)
}

// packed makes the chart's archive from the repository, and hands back its place.
func packed(ctx context.Context, asked question, wanted *helmv2.HelmRelease) (string, error) {
	origin, spec := asked.Unit, []string{"spec", "chart", "spec"}
	if wanted.Spec.ChartRef != nil {
		object, err := referred(asked, asked.Unit, "spec", "chartRef")
		if err != nil {
			return "", err
		}
		origin, spec = *object, []string{"spec"}
	}
	if err := fetched(asked, origin, append(spec, "sourceRef")...); err != nil {
		return "", err
	}
	path, _, _ := unstructured.NestedString(origin.Object, append(spec, "chart")...)
	files, _, _ := unstructured.NestedStringSlice(origin.Object, append(spec, "valuesFiles")...)
	missing, _, _ := unstructured.NestedBool(origin.Object, append(spec, "ignoreMissingValuesFiles")...)
	archive := filepath.Join(filepath.Dir(asked.Root), "chart.tgz")
	return archive, charting.Build(ctx, asked.Root, path, archive, files, missing)
}
