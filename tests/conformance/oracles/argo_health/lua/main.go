// What Argo CD makes of an argocd-cm and an object: JSON lines of both in, JSON lines of answers out.
//
// The answer is null where Argo CD has no check for the kind. The error says why an answer is
// Unknown; the refusal, why the argocd-cm cannot be used.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
)

const (
	longestLine = 1 << 24
	namespace   = "argocd"
)

type question struct {
	Data map[string]string `json:"data"`
	Body json.RawMessage   `json:"body"`
}

type answer struct {
	Answer  *health.HealthStatus `json:"answer"`
	Error   string               `json:"error,omitempty"`
	Refusal string               `json:"refusal,omitempty"`
}

func main() {
	log.SetFlags(0)
	logrus.SetOutput(io.Discard)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, longestLine)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.Scan() {
		if err := out.Encode(judge(in.Bytes())); err != nil {
			log.Fatal(err)
		}
	}
	if err := in.Err(); err != nil {
		log.Fatal(err)
	}
}

func judge(line []byte) answer {
	asked, object := question{}, &unstructured.Unstructured{}
	if err := json.Unmarshal(line, &asked); err != nil {
		log.Fatalf("not a question: %v", err)
	}
	if err := object.UnmarshalJSON(asked.Body); err != nil {
		log.Fatalf("not an object: %v", err)
	}
	overrides, err := read(asked.Data)
	if err != nil {
		return answer{Refusal: err.Error()}
	}
	said, err := health.GetResourceHealth(object, overrides)
	if err != nil {
		return answer{Answer: said, Error: err.Error()}
	}
	return answer{Answer: said}
}

func read(data map[string]string) (lua.ResourceHealthOverrides, error) {
	labels := map[string]string{"app.kubernetes.io/part-of": "argocd"}
	meta := metav1.ObjectMeta{Name: "argocd-cm", Namespace: namespace, Labels: labels}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: meta, Data: data})
	return settings.NewSettingsManager(ctx, client, namespace).GetResourceOverrides()
}
