// Command kubernetes is the real kube-apiserver, built from its module for the test of
// the manifests in docs/kubernetes.md. It is a module of its own, so that no other module
// depends on it. Only `make test-all` builds it, which takes six minutes of processor
// time.
package main

import (
	"io"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
