// What Argo CD says of an object's health: JSON lines of objects in, JSON lines of answers out.
//
// An answer is null where Argo CD has no check for the kind.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const longestLine = 1 << 20

func main() {
	log.SetFlags(0)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, longestLine)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(in.Bytes()); err != nil {
			log.Fatalf("not an object: %v", err)
		}
		// The error is the answer's message as well.
		answer, _ := health.GetResourceHealth(object, lua.ResourceHealthOverrides{})
		if err := out.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
	if err := in.Err(); err != nil {
		log.Fatal(err)
	}
}
