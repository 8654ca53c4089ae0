//go:build unix

package doctest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// manifestsOfKubernetes returns the manifests of the page. entrypoint is the Deployment
// of the leader with the lines of "pawl as the entrypoint" instead of its probe.
func manifestsOfKubernetes(t *testing.T) (page []string, entrypoint string) {
	t.Helper()
	probeLines := regexp.MustCompile(`(?m)^( +)readinessProbe:\n +httpGet: .*\n`)
	var leader string
	for _, b := range blocks(t, "docs/kubernetes.md") {
		switch {
		case b.info != "yaml":
		case strings.Contains(b.text, "\nkind: "):
			for manifest := range strings.SplitSeq(b.text, "---\n") {
				page = append(page, manifest)
				if strings.Contains(manifest, "kind: Deployment\n") && leader == "" {
					leader = manifest
				}
			}
		default:
			entrypoint = probeLines.ReplaceAllString(leader, "${1}"+strings.ReplaceAll(b.text, "$", "$$"))
		}
	}
	if len(page) < 6 || entrypoint == "" || entrypoint == leader {
		t.Fatalf("the page has %d manifests, and the entrypoint is %q: is the pattern right?", len(page), entrypoint)
	}
	return page, entrypoint
}

// The API server of Kubernetes accepts each manifest of the page without a warning.
func TestTheManifestsOfKubernetes(t *testing.T) {
	skipIfShort(t, "it builds the API server of Kubernetes")
	if _, err := os.Stat(filepath.Join(root, "bin/testservers/kubernetes")); err != nil && os.Getenv("PAWL_TEST_REQUIRE") == "" {
		t.Skip("make built-all builds the API server of Kubernetes, which takes minutes")
	}
	page, entrypoint := manifestsOfKubernetes(t)
	s := startAPIServer(t)
	create := func(namespace string, manifests ...string) (all []manifestObject) {
		s.addNamespace(t, namespace)
		for _, manifest := range manifests {
			var o manifestObject
			object, err := s.create(t.Context(), namespace, manifest)
			if err == nil {
				err = json.Unmarshal(object, &o)
			}
			if err != nil {
				t.Errorf("%v in\n%s", err, manifest)
			}
			all = append(all, o)
		}
		return all
	}
	objects, entrypointObjects := create("page", page...), create("entrypoint", entrypoint)
	t.Run("references", func(t *testing.T) { wantNoDanglingReferences(t, objects) })
	t.Run("verbs and flags of pawl", func(t *testing.T) { wantKnownVerbsAndFlags(t, append(objects, entrypointObjects...)) })
	t.Run("mistakes", func(t *testing.T) { wantMistakesRefused(t, s, page) })
}

// wantMistakesRefused checks that the server refuses manifests with mistakes.
func wantMistakesRefused(t *testing.T, s *apiServer, page []string) {
	s.addNamespace(t, "mistakes")
	for _, mistake := range []struct{ kind, right, wrong, want string }{
		{"CronJob", "concurrencyPolicy:", "concurencyPolicy:", `unknown field \"spec.concurencyPolicy\"`},
		{"CronJob", "kind: CronJob", "kind: CronTask", "404 Not Found"},
		{"CronJob", "batch/v1", "batch/v1beta1", "404 Not Found"},
		{"CronJob", `"0 3 * * *"`, `"0 25 * * *"`, "above maximum"},
		{"Deployment", "replicas: 3", "replicas: three", "cannot unmarshal"},
		{"Deployment", "replicas: 3", "replicas: 3\n  replicas: 3", "already set"},
		{"Deployment", "  template:\n    metadata:\n      labels: {app: scheduler}", "  template:\n    metadata:\n      labels: {app: other}", "does not match template"},
		{"Deployment", "      containers:", "      nodeSelector: {beta.kubernetes.io/os: linux}\n      containers:", "warns"},
		{"Service", "targetPort: http", "targetPort: HTTP_", "targetPort"},
	} {
		i := slices.IndexFunc(page, func(text string) bool {
			return strings.Contains(text, "\nkind: "+mistake.kind+"\n") && strings.Contains(text, mistake.right)
		})
		if i < 0 {
			t.Errorf("no %s of the page has %q", mistake.kind, mistake.right)
			continue
		}
		_, err := s.create(t.Context(), "mistakes", strings.Replace(page[i], mistake.right, mistake.wrong, 1))
		if err == nil || !strings.Contains(err.Error(), mistake.want) {
			t.Errorf("%s in a %s: %v, want %q", mistake.wrong, mistake.kind, err, mistake.want)
		}
	}
}

// wantNoDanglingReferences checks references, which the API server does not.
func wantNoDanglingReferences(t *testing.T, objects []manifestObject) {
	secrets := map[string]map[string][]byte{}
	for _, o := range objects {
		if o.Kind == "Secret" {
			secrets[o.Metadata.Name] = o.Data
		}
	}
	for _, o := range objects {
		name := o.Kind + " " + o.Metadata.Name
		labels := o.selectedLabels()
		if o.Spec.Selector != nil && !slices.ContainsFunc(objects, func(other manifestObject) bool { return selected(labels, other.pod()) }) {
			t.Errorf("%s selects no pod: %v", name, labels)
		}
		pod := o.pod()
		for _, v := range pod.Spec.Volumes {
			if v.Secret != nil && secrets[v.Secret.SecretName] == nil {
				t.Errorf("%s mounts the Secret %s, which the page does not have", name, v.Secret.SecretName)
			}
		}
		for _, c := range pod.Spec.Containers {
			for _, p := range []*probe{c.ReadinessProbe, c.LivenessProbe} {
				if port := c.missingPort(p); port != "" {
					t.Errorf("a probe of %s uses the port %s, which its container does not have", name, port)
				}
			}
			for _, e := range c.Env {
				if ref := e.ValueFrom.SecretKeyRef; ref != nil && len(secrets[ref.Name][ref.Key]) == 0 {
					t.Errorf("%s of %s refers to the Secret %s, which has no %s", e.Name, name, ref.Name, ref.Key)
				}
			}
		}
	}
}

// selected reports whether a selector with these labels selects a pod.
func selected(labels map[string]string, pod podTemplate) bool {
	for k, v := range labels {
		if pod.Metadata.Labels[k] != v {
			return false
		}
	}
	return len(labels) > 0
}

// wantKnownVerbsAndFlags checks that pawl has the verbs and flags of the manifests.
func wantKnownVerbsAndFlags(t *testing.T, objects []manifestObject) {
	called := map[string]bool{}
	for _, o := range objects {
		for _, c := range o.pod().Spec.Containers {
			verb, words := c.pawlArguments()
			if verb == "" {
				continue
			}
			help, err := os.ReadFile(filepath.Join(root, "cmd/pawl/testdata/golden", "pawl-"+verb+".txt"))
			if err != nil {
				t.Errorf("pawl has no %s: %v", verb, err)
			}
			called[verb] = true
			for _, word := range words {
				if strings.HasPrefix(word, "-") && !regexp.MustCompile(`(?m)^ +(-\w, )?`+word+`( |$)`).Match(help) {
					t.Errorf("pawl %s has no %s", verb, word)
				}
			}
		}
	}
	if want := []string{"elect", "once", "serve"}; !slices.Equal(slices.Sorted(maps.Keys(called)), want) {
		t.Errorf("the manifests call %v, want %v", slices.Sorted(maps.Keys(called)), want)
	}
}
