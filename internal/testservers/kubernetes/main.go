// Command kubernetes is the real kube-apiserver, for the test of the manifests in
// docs/kubernetes.md. It has its own module, so that no other module depends on the
// server. Only `make test-all` builds it, because the build takes six minutes of
// processor time.
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
