//go:build unix

package doctest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// manifestObject has the fields of an object that the test reads.
type manifestObject struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string][]byte // of a Secret
	Spec     struct {
		Selector    json.RawMessage // of pods: by labels, or by matchLabels
		Template    podTemplate     // of a Deployment
		JobTemplate struct {        // of a CronJob
			Spec struct{ Template podTemplate }
		}
	}
}

type podTemplate struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		Containers []container
		Volumes    []struct {
			Name   string
			Secret *struct{ SecretName string }
		}
	}
}

type container struct {
	Image         string
	Command, Args []string
	Env           []struct {
		Name      string
		ValueFrom struct{ SecretKeyRef *struct{ Name, Key string } }
	}
	Ports                         []struct{ Name string }
	ReadinessProbe, LivenessProbe *probe
}

// pod returns the template of the pods that an object makes.
func (o *manifestObject) pod() podTemplate {
	if o.Kind == "CronJob" {
		return o.Spec.JobTemplate.Spec.Template
	}
	return o.Spec.Template
}

// selectedLabels returns the labels of the pods that an object selects.
func (o *manifestObject) selectedLabels() (labels map[string]string) {
	var by struct{ MatchLabels map[string]string }
	if json.Unmarshal(o.Spec.Selector, &by) == nil && by.MatchLabels != nil {
		return by.MatchLabels
	}
	_ = json.Unmarshal(o.Spec.Selector, &labels) // of a Service
	return labels
}

// A probe has the field of a probe that the test reads.
type probe struct{ HTTPGet struct{ Port any } }

// missingPort returns the port of a probe if the container does not have it, or "".
func (c *container) missingPort(p *probe) string {
	if p == nil {
		return ""
	}
	name, _ := p.HTTPGet.Port.(string) // a number otherwise
	for _, port := range c.Ports {
		if port.Name == name {
			return ""
		}
	}
	return name
}

// pawlArguments returns the verb with which a container starts pawl, and the words up to
// the command that pawl starts. Other containers have no verb.
func (c *container) pawlArguments() (verb string, words []string) {
	argv := slices.Concat(c.Command, c.Args)
	if len(c.Command) == 0 && strings.HasPrefix(c.Image, "registry.example/pawl:") {
		argv = append([]string{"pawl"}, argv...) // the entrypoint of the Dockerfile
	}
	if len(argv) == 3 && argv[0] == "/bin/sh" && argv[1] == "-c" {
		line := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(argv[2], "KEY")
		argv = strings.Fields(strings.TrimPrefix(line, "exec "))
	}
	if len(argv) < 2 || argv[0] != "pawl" {
		return "", nil
	}
	words = argv[2:]
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	return argv[1], words
}
