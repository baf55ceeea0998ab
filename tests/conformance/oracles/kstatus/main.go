// Command kstatus answers how objects are, in Flux's own words: one JSON line in, one JSON line out.
//
// With "pods", and for Jobs, the readers that Flux polls with are asked; these pods are all that their cluster lists.
// Else it is the function beneath them, which also tells its reason. An "age" is in seconds and gives the object its
// creation time: kstatus reads the machine's clock.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/clusterreader/fake"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/statusreaders"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	flux "github.com/fluxcd/pkg/runtime/statusreaders"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

type question struct {
	Body map[string]interface{}   `json:"body"`
	Pods []map[string]interface{} `json:"pods"`
	Age  *int64                   `json:"age"`
}

type answer struct {
	Status  status.Status `json:"status"`
	Reason  string        `json:"reason"`
	Message string        `json:"message"`
}

// cluster lists the pods of the question, whatever is asked of it.
type cluster struct {
	fake.NoopClusterReader
	pods []map[string]interface{}
}

func (c *cluster) ListNamespaceScoped(_ context.Context, list *unstructured.UnstructuredList, _ string, _ labels.Selector) error {
	if list.GetKind() != "Pod" {
		return nil
	}
	for _, pod := range c.pods {
		list.Items = append(list.Items, unstructured.Unstructured{Object: pod})
	}
	return nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	readers := fluxReaders()
	for lines.Scan() {
		var asked question
		must(json.Unmarshal(lines.Bytes(), &asked))
		told, err := json.Marshal(reply(readers, asked))
		must(err)
		fmt.Fprintln(out, string(told))
	}
	must(lines.Err())
}

func fluxReaders() engine.StatusReader {
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	set := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{pod.GroupVersion(), set.GroupVersion()})
	mapper.Add(pod, meta.RESTScopeNamespace)
	mapper.Add(set, meta.RESTScopeNamespace)
	return statusreaders.NewStatusReader(mapper, flux.NewCustomJobStatusReader(mapper))
}

// reply takes a wrong type that kstatus does not survive for an answer: it does not know.
func reply(readers engine.StatusReader, asked question) (told answer) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case *runtime.TypeAssertionError:
			told = answer{Status: status.UnknownStatus}
		default:
			panic(problem)
		}
	}()
	object := &unstructured.Unstructured{Object: asked.Body}
	if asked.Age != nil {
		born := time.Now().Add(-time.Duration(*asked.Age) * time.Second).UTC().Format(time.RFC3339)
		must(unstructured.SetNestedField(object.Object, born, "metadata", "creationTimestamp"))
	}
	job := object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "batch", Kind: "Job"}
	if asked.Pods == nil && !job {
		computed, err := status.Compute(object)
		if err != nil {
			return answer{Status: status.UnknownStatus}
		}
		return answer{computed.Status, reasonOf(*computed), computed.Message}
	}
	read, err := readers.ReadStatusForObject(context.Background(), &cluster{pods: asked.Pods}, object)
	must(err)
	told = answer{Status: read.Status, Message: read.Message}
	if job {
		told.Reason = reasonOf(flux.ComputeJobStatus(object))
	}
	return told
}

func reasonOf(result status.Result) string {
	if len(result.Conditions) == 0 {
		return ""
	}
	return result.Conditions[0].Reason
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
