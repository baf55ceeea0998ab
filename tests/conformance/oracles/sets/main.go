// What Argo CD's ApplicationSet controller generates: one question a line in, one answer a line out.
// Repositories are real ones, made of the files that the question holds.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/argoproj/argo-cd/v3/applicationset/controllers/template"
	"github.com/argoproj/argo-cd/v3/applicationset/generators"
	"github.com/argoproj/argo-cd/v3/applicationset/utils"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
)

const home = "argocd"

type question struct {
	Set     v1alpha1.ApplicationSet `json:"set"`
	Files   map[string]string       `json:"files"`
	Secrets []corev1.Secret         `json:"secrets"`
}

type answer struct {
	Applications []v1alpha1.Application `json:"applications"`
	Error        string                 `json:"error,omitempty"`
}

type repository struct{ root string }

func (r repository) GetFiles(_ context.Context, _, _, _, pattern string, _ bool, _ *v1alpha1.SourceIntegrity) (map[string][]byte, error) {
	listing := exec.Command("git", "ls-files", "--full-name", "-z", "--", pattern)
	listing.Dir = r.root
	out, err := listing.Output()
	if err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	for _, path := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
		if path == "" {
			continue
		}
		if found[path], err = os.ReadFile(filepath.Join(r.root, path)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (r repository) GetDirectories(_ context.Context, _, _, _ string, _ bool, _ *v1alpha1.SourceIntegrity) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(r.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if relative, _ := filepath.Rel(r.root, path); relative != "." {
			paths = append(paths, relative)
		}
		return nil
	})
	return paths, err
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
		must(err)
		must(json.Unmarshal(line, &asked))
		must(out.Encode(ask(asked)))
	}
}

func ask(asked question) (told answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			told = answer{Error: fmt.Sprint("panic: ", panicked)}
		}
	}()
	root := checkout(asked.Files)
	defer os.RemoveAll(root)
	known := cluster(asked.Secrets)
	terminal := map[string]generators.Generator{
		"List":     generators.NewListGenerator(),
		"Clusters": generators.NewClusterGenerator(known, home),
		"Git":      generators.NewGitGenerator(repository{root}, home),
	}
	nested := with(terminal, generators.NewMatrixGenerator(terminal), generators.NewMergeGenerator(terminal))
	all := with(nested, generators.NewMatrixGenerator(nested), generators.NewMergeGenerator(nested))
	log := logrus.NewEntry(logrus.StandardLogger())
	made, _, err := template.GenerateApplications(log, asked.Set, all, &utils.Render{}, known)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Applications: made}
}

func with(some map[string]generators.Generator, matrix, merge generators.Generator) map[string]generators.Generator {
	all := maps.Clone(some)
	all["Matrix"], all["Merge"] = matrix, merge
	return all
}

func cluster(secrets []corev1.Secret) client.Client {
	scheme := runtime.NewScheme()
	must(corev1.AddToScheme(scheme))
	must(v1alpha1.AddToScheme(scheme))
	objects := []client.Object{&v1alpha1.AppProject{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: home}}}
	for i := range secrets {
		objects = append(objects, &secrets[i])
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func checkout(files map[string]string) string {
	root, err := os.MkdirTemp("", "repository")
	must(err)
	root, err = filepath.EvalSymlinks(root)
	must(err)
	for path, content := range files {
		place := filepath.Join(root, path)
		must(os.MkdirAll(filepath.Dir(place), 0o755))
		must(os.WriteFile(place, []byte(content), 0o600))
	}
	if len(files) > 0 {
		for _, words := range [][]string{{"init", "-q"}, {"add", "-A", "-f"}} {
			command := exec.Command("git", words...)
			command.Dir = root
			must(command.Run())
		}
	}
	return root
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
