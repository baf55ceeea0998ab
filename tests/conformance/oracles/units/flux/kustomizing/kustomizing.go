// Package kustomizing does what kustomize-controller does between fetching and applying. It bears
// that module's name, since the decryptor is internal to it.
package kustomizing

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/resmap"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/kustomize-controller/internal/decryptor"
	"github.com/fluxcd/pkg/kustomize"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
)

// Build renders one Kustomization from the root of its source.
func Build(ctx context.Context, kube client.Client, root string, unit unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var asked kustomizev1.Kustomization
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(unit.Object, &asked); err != nil {
		return nil, err
	}
	folder := filepath.Join(root, asked.Spec.Path)
	if _, err := kustomize.NewGenerator(root, unit).WriteFile(folder); err != nil {
		return nil, err
	}
	opener, clean, err := decryptor.New(kube, &asked, decryptor.WithRoot(root))
	if err != nil {
		return nil, err
	}
	defer clean()
	if err := opener.ImportKeys(ctx); err != nil {
		return nil, err
	}
	if err := opener.DecryptSources(folder); err != nil {
		return nil, err
	}
	built, err := kustomize.SecureBuild(root, folder, false)
	if err != nil {
		return nil, err
	}
	if err := finish(ctx, kube, opener, &asked, unit, built); err != nil {
		return nil, err
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	objects, err := ssautil.ReadObjects(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if common := asked.Spec.CommonMetadata; common != nil {
		ssautil.SetCommonMetadata(objects, common.Labels, common.Annotations)
	}
	return objects, nil
}

// finish opens what is encrypted and replaces variables, object by object.
func finish(ctx context.Context, kube client.Client, opener *decryptor.Decryptor, asked *kustomizev1.Kustomization, unit unstructured.Unstructured, built resmap.ResMap) error {
	always := asked.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways
	for _, one := range built.Resources() {
		if asked.Spec.Decryption != nil {
			opened, err := opener.DecryptResource(one)
			if err != nil {
				return fmt.Errorf("decryption of %s: %w", one.GetName(), err)
			}
			if opened != nil {
				if _, err := built.Replace(one); err != nil {
					return err
				}
			}
		}
		if asked.Spec.PostBuild != nil {
			written, err := kustomize.SubstituteVariables(ctx, kube, unit, one,
				kustomize.SubstituteWithStrict(true), kustomize.SubstituteWithAlways(always))
			if err != nil {
				return fmt.Errorf("variables of %s: %w", one.GetName(), err)
			}
			if written != nil {
				if _, err := built.Replace(one); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
