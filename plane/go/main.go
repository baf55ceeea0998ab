// Command plane holds the four programs of a control plane; the first argument says which one to be.
//
// Each of them alone is about as large as all of them together: they share nearly all their code.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // CronJobs name time zones, and a small machine has no zone files

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if len(os.Args) < 2 {
		refuse("no part was named")
	}
	part := os.Args[1]
	os.Args = append([]string{part}, os.Args[2:]...)
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
	case "apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	case "scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	default:
		refuse("there is no part " + part)
	}
}

func refuse(problem string) {
	fmt.Fprintln(os.Stderr, problem)
	fmt.Fprintln(os.Stderr, "usage: plane etcd|apiserver|controller-manager|scheduler FLAGS...")
	os.Exit(2)
}
