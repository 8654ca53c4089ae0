package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// manifests are the objects of the page, by kind and name. An excerpt of a container has
// no kind, and counts as a Container.
type manifests struct {
	deployments map[string]*appsv1.Deployment
	cronJobs    map[string]*batchv1.CronJob
	services    map[string]*corev1.Service
	secrets     map[string]*corev1.Secret
	budgets     map[string]*policyv1.PodDisruptionBudget
	containers  []corev1.Container
}

// decode reads the manifests. It fails if a field is unknown, occurs twice, or has a
// value of the wrong type.
func decode(t *testing.T) *manifests {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := &manifests{
		deployments: map[string]*appsv1.Deployment{}, cronJobs: map[string]*batchv1.CronJob{},
		services: map[string]*corev1.Service{}, secrets: map[string]*corev1.Secret{},
		budgets: map[string]*policyv1.PodDisruptionBudget{},
	}
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		for text := range strings.SplitSeq(block[1], "---\n") {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			switch kind.Kind {
			case "Deployment":
				o := strictly[appsv1.Deployment](t, text)
				m.deployments[o.Name] = o
			case "CronJob":
				o := strictly[batchv1.CronJob](t, text)
				m.cronJobs[o.Name] = o
			case "Service":
				o := strictly[corev1.Service](t, text)
				m.services[o.Name] = o
			case "Secret":
				o := strictly[corev1.Secret](t, text)
				m.secrets[o.Name] = o
			case "PodDisruptionBudget":
				o := strictly[policyv1.PodDisruptionBudget](t, text)
				m.budgets[o.Name] = o
			case "":
				m.containers = append(m.containers, *strictly[corev1.Container](t, text))
			default:
				t.Errorf("the test does not know the kind %s", kind.Kind)
			}
		}
	}
	return m
}

func strictly[T any](t *testing.T, text string) *T {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	object := new(T)
	problems, err := json.UnmarshalStrict(data, object)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v in\n%s", err, problems, text)
	}
	if o, ok := any(object).(runtime.Object); ok {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		if got := o.GetObjectKind().GroupVersionKind(); !scheme.Recognizes(got) {
			t.Errorf("%v is not known in\n%s", got, text)
		}
	}
	return object
}

// pods returns the templates of all pods, by the name of the object that makes them.
func (m *manifests) pods() map[string]corev1.PodTemplateSpec {
	found := map[string]corev1.PodTemplateSpec{}
	for name, d := range m.deployments {
		found[name] = d.Spec.Template
	}
	for name, c := range m.cronJobs {
		found[name] = c.Spec.JobTemplate.Spec.Template
	}
	return found
}

func TestManifestsReferToWhatIsThere(t *testing.T) {
	m := decode(t)
	if len(m.deployments) < 2 || len(m.cronJobs) < 1 || len(m.services) < 1 || len(m.budgets) < 1 || len(m.containers) < 1 {
		t.Fatalf("the page has %d Deployments, %d CronJobs, %d Services, %d budgets, %d parts of containers: is the pattern right?",
			len(m.deployments), len(m.cronJobs), len(m.services), len(m.budgets), len(m.containers))
	}
	selects := func(what string, selector labels.Selector, err error) {
		if err != nil || selector.Empty() {
			t.Errorf("%s selects %v, %v", what, selector, err)
			return
		}
		for _, pod := range m.pods() {
			if selector.Matches(labels.Set(pod.Labels)) {
				return
			}
		}
		t.Errorf("%s selects no pod: %v", what, selector)
	}
	for name, d := range m.deployments {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("the Deployment %s does not select its own pods: %v, %v", name, selector, err)
		}
	}
	for name, b := range m.budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		selects("the budget "+name, selector, err)
	}
	for name, s := range m.services {
		selects("the Service "+name, labels.SelectorFromSet(s.Spec.Selector), nil)
	}
	for name, pod := range m.pods() {
		volumes := map[string]bool{}
		for _, v := range pod.Spec.Volumes {
			volumes[v.Name] = true
			if v.Secret != nil && m.secrets[v.Secret.SecretName] == nil {
				t.Errorf("%s mounts the Secret %s, which the page does not have", name, v.Secret.SecretName)
			}
		}
		for _, c := range pod.Spec.Containers {
			ports := map[string]bool{}
			for _, p := range c.Ports {
				ports[p.Name] = true
			}
			for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
				if probe != nil && probe.HTTPGet.Port.StrVal != "" && !ports[probe.HTTPGet.Port.StrVal] {
					t.Errorf("a probe of %s asks the port %s, which it does not have", name, probe.HTTPGet.Port.StrVal)
				}
			}
			for _, v := range c.VolumeMounts {
				if !volumes[v.Name] {
					t.Errorf("%s mounts %s, which is no volume", name, v.Name)
				}
			}
			for _, e := range c.Env {
				if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
					continue
				}
				ref := e.ValueFrom.SecretKeyRef
				if s := m.secrets[ref.Name]; s == nil || s.StringData[ref.Key] == "" {
					t.Errorf("%s of %s is of the Secret %s, which has no %s", e.Name, name, ref.Name, ref.Key)
				}
			}
		}
	}
}

// Each call of pawl in the manifests has a verb and flags that pawl's help knows.
func TestManifestsCallPawlAsItsHelpSays(t *testing.T) {
	m := decode(t)
	containers := m.containers
	for _, pod := range m.pods() {
		containers = append(containers, pod.Spec.Containers...)
	}
	called := map[string]bool{}
	for _, c := range containers {
		argv := slices.Concat(c.Command, c.Args)
		if len(c.Command) == 0 && strings.HasPrefix(c.Image, "registry.example/pawl:") {
			argv = append([]string{"pawl"}, argv...) // the entrypoint of the Dockerfile
		}
		if len(argv) == 3 && argv[0] == "/bin/sh" && argv[1] == "-c" {
			line := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(argv[2], "KEY")
			argv = strings.Fields(strings.TrimPrefix(line, "exec "))
		}
		if len(argv) < 2 || argv[0] != "pawl" {
			continue
		}
		help, err := os.ReadFile(filepath.Join(root, "cmd/pawl/testdata/golden", "pawl-"+argv[1]+".txt"))
		if err != nil {
			t.Errorf("pawl has no %s: %v", argv[1], err)
			continue
		}
		called[argv[1]] = true
		for _, word := range argv[2:] {
			if word == "--" {
				break
			}
			if strings.HasPrefix(word, "-") && !regexp.MustCompile(`(?m)^ +(-\w, )?`+word+`( |$)`).Match(help) {
				t.Errorf("pawl %s has no %s", argv[1], word)
			}
		}
	}
	for _, verb := range []string{"once", "elect", "serve"} {
		if !called[verb] {
			t.Errorf("pawl %s was not found in the manifests", verb)
		}
	}
}
