// What Argo CD's repository server makes of Applications: one question a line in, one answer a line
// out. The repository is a directory that the caller has copied for us, since Kustomize's options
// are written into it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/argoproj/argo-cd/v3/reposerver/repository"
	"github.com/argoproj/argo-cd/v3/util/argo"
	"github.com/argoproj/argo-cd/v3/util/git"
	utilio "github.com/argoproj/argo-cd/v3/util/io"
)

const kubeVersion = "1.36.0"

type question struct {
	Root        string               `json:"root"`
	URL         string               `json:"url"`
	Application v1alpha1.Application `json:"unit"`
}

type answer struct {
	Objects []json.RawMessage `json:"objects"`
	Error   string            `json:"error,omitempty"`
}

func main() {
	logrus.SetOutput(io.Discard)
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
		objects, err := manifests(asked)
		told := answer{Objects: objects}
		if err != nil {
			told.Error = err.Error()
		}
		if err := out.Encode(told); err != nil {
			panic(err)
		}
	}
}

func manifests(asked question) ([]json.RawMessage, error) {
	app := asked.Application
	spec := argo.NormalizeApplicationSpec(&app.Spec)
	sources := spec.GetSources()
	if len(sources) == 0 || spec.Source == nil && len(spec.Sources) == 0 {
		return nil, errors.New("the Application has no source")
	}
	refs := map[string]*v1alpha1.RefTarget{}
	for _, source := range sources {
		if source.Ref != "" {
			refs["$"+source.Ref] = &v1alpha1.RefTarget{
				Repo: v1alpha1.Repository{Repo: source.RepoURL}, TargetRevision: source.TargetRevision,
			}
		}
	}
	paths := utilio.NewRandomizedTempPaths(os.TempDir())
	paths.Add(git.NormalizeGitURL(asked.URL), asked.Root)
	var objects []json.RawMessage
	for _, source := range sources {
		if source.Path == "" && source.Chart == "" {
			continue
		}
		if !git.SameURL(source.RepoURL, asked.URL) {
			return nil, fmt.Errorf("%s is not this repository", source.RepoURL)
		}
		place := filepath.Join(asked.Root, source.Path)
		if _, err := os.Stat(place); err != nil {
			return nil, err
		}
		made, err := repository.GenerateManifests(
			context.Background(), place, asked.Root, source.TargetRevision,
			&apiclient.ManifestRequest{
				Repo:               &v1alpha1.Repository{Repo: source.RepoURL},
				AppName:            app.InstanceName("argocd"),
				Namespace:          spec.Destination.Namespace,
				ApplicationSource:  source.DeepCopy(),
				KubeVersion:        kubeVersion,
				ProjectName:        spec.Project,
				HasMultipleSources: spec.HasMultipleSources(),
				RefSources:         refs,
			},
			false, nil, resource.MustParse("10M"), paths,
		)
		if err != nil {
			return nil, err
		}
		for _, text := range made.Manifests {
			objects = append(objects, json.RawMessage(text))
		}
	}
	return objects, nil
}
