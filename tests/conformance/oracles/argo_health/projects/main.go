// What Argo CD's projects allow: JSON lines of questions in, JSON lines of answers out.
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"os"
	"time"
	_ "unsafe" // for the checks that take a moment

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const longestLine = 1 << 24

type question struct {
	Project     v1alpha1.AppProject  `json:"project"`
	Application v1alpha1.Application `json:"application"`
	Cluster     v1alpha1.Cluster     `json:"cluster"`
	Objects     []object             `json:"objects"`
	Moments     []int64              `json:"moments"`
}

type object struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type answer struct {
	Source      bool   `json:"source"`
	Home        bool   `json:"home"`
	Destination bool   `json:"destination"`
	Objects     []bool `json:"objects"`
	Automated   []bool `json:"automated"`
	Manual      []bool `json:"manual"`
}

//go:linkname canSyncAtTime github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1.(*SyncWindows).canSyncAtTime
func canSyncAtTime(w *v1alpha1.SyncWindows, isManual bool, at time.Time) (bool, error)

func main() {
	log.SetFlags(0)
	logrus.SetOutput(io.Discard)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, longestLine)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		asked := question{}
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(decide(&asked)); err != nil {
			log.Fatal(err)
		}
	}
	if err := in.Err(); err != nil {
		log.Fatal(err)
	}
}

func decide(asked *question) answer {
	project, application := asked.Project, &asked.Application
	told := answer{
		Source: project.IsSourcePermitted(application.Spec.GetSource()),
		Home:   project.IsAppNamespacePermitted(application, "argocd"),
	}
	told.Destination, _ = project.IsDestinationPermitted(&asked.Cluster, application.Spec.Destination.Namespace, nil)
	for _, one := range asked.Objects {
		kind := schema.GroupKind{Group: one.Group, Kind: one.Kind}
		permitted, _ := project.IsResourcePermitted(kind, one.Name, one.Namespace, &asked.Cluster, nil)
		told.Objects = append(told.Objects, permitted)
	}
	windows := project.Spec.SyncWindows.Matches(application)
	for _, moment := range asked.Moments {
		at := time.UnixMilli(moment)
		automated, _ := canSyncAtTime(windows, false, at)
		manual, _ := canSyncAtTime(windows, true, at)
		told.Automated, told.Manual = append(told.Automated, automated), append(told.Manual, manual)
	}
	return told
}
