// What Flux makes of Kustomizations and HelmReleases: one question a line in, one answer a line
// out. The repository is a directory that the caller has copied for us, since the controllers write
// into it. The cluster is what the caller says is in it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kustomizing "github.com/fluxcd/kustomize-controller/oracle"
	"github.com/fluxcd/pkg/sourceignore"
)

type question struct {
	Root    string                      `json:"root"`
	URL     string                      `json:"url"`
	Unit    unstructured.Unstructured   `json:"unit"`
	Cluster []unstructured.Unstructured `json:"cluster"`
}

type answer struct {
	Objects []*unstructured.Unstructured `json:"objects"`
	Error   string                       `json:"error,omitempty"`
}

func main() {
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var asked question
		if err == nil {
			err = json.Unmarshal(line, &asked)
		}
		if err != nil {
			panic(err)
		}
		objects, err := render(context.Background(), asked)
		told := answer{Objects: objects}
		if err != nil {
			told.Error = err.Error()
		}
		if err := out.Encode(told); err != nil {
			panic(err)
		}
	}
}

func render(ctx context.Context, asked question) ([]*unstructured.Unstructured, error) {
	kube, err := cluster(asked.Cluster)
	if err != nil {
		return nil, err
	}
	if asked.Unit.GetKind() == "HelmRelease" {
		return release(ctx, kube, asked)
	}
	if err := fetched(asked, asked.Unit, "spec", "sourceRef"); err != nil {
		return nil, err
	}
	return kustomizing.Build(ctx, kube, asked.Root, asked.Unit)
}

// cluster knows the ConfigMaps and Secrets; sources are looked up by hand.
func cluster(objects []unstructured.Unstructured) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	seen := map[string]bool{}
	for _, one := range objects {
		kind := one.GetKind()
		key := kind + "/" + one.GetNamespace() + "/" + one.GetName()
		if (kind == "ConfigMap" || kind == "Secret") && !seen[key] {
			seen[key] = true
			builder = builder.WithObjects(one.DeepCopy())
		}
	}
	return builder.Build(), nil
}

// fetched says whether a reference leads to this very repository, and makes it what Flux gets of it.
func fetched(asked question, from unstructured.Unstructured, path ...string) error {
	source, err := referred(asked, from, path...)
	if err != nil {
		return err
	}
	url, _, _ := unstructured.NestedString(source.Object, "spec", "url")
	if source.GetKind() != "GitRepository" || url != asked.URL {
		return fmt.Errorf("%s is not this repository", url)
	}
	ignored, _, _ := unstructured.NestedString(source.Object, "spec", "ignore")
	return leaveOut(asked.Root, ignored)
}

// leaveOut removes what source-controller does not pack.
func leaveOut(root, ignored string) error {
	domain := strings.Split(root, string(filepath.Separator))
	patterns, err := sourceignore.LoadIgnorePatterns(root, domain)
	if err != nil {
		return err
	}
	patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(ignored), domain)...)
	matcher := sourceignore.NewDefaultMatcher(patterns, domain)
	if len(patterns) > 0 {
		matcher = sourceignore.NewMatcher(append(sourceignore.VCSPatterns(domain), patterns...))
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root || entry.IsDir() {
			return err
		}
		if matcher.Match(strings.Split(path, string(filepath.Separator)), false) {
			return os.Remove(path)
		}
		return nil
	})
}

// referred is the object of the cluster that a reference names.
func referred(asked question, from unstructured.Unstructured, path ...string) (*unstructured.Unstructured, error) {
	reference, _, err := unstructured.NestedStringMap(from.Object, path...)
	if err != nil {
		return nil, err
	}
	namespace := reference["namespace"]
	if namespace == "" {
		namespace = from.GetNamespace()
	}
	for _, one := range asked.Cluster {
		group := one.GroupVersionKind().GroupKind()
		if group == (schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: reference["kind"]}) &&
			one.GetName() == reference["name"] && one.GetNamespace() == namespace {
			return &one, nil
		}
	}
	return nil, fmt.Errorf("there is no %s %s/%s", reference["kind"], namespace, reference["name"])
}
