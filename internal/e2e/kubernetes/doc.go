// Package kubernetes contains tests of the manifests in docs/kubernetes.md. It is a
// module of its own, outside go.work, so that no other module is built with the versions
// that the types of Kubernetes require. The tests of internal/e2e/doctest run it.
package kubernetes
