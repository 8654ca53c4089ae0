package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
)

// These variables contain the lock under which a command runs.
const (
	nameVariable   = "PAWL_NAME"
	fenceVariable  = "PAWL_FENCE"
	keyVariable    = "PAWL_KEY"
	fencesVariable = "PAWL_FENCES" // with several names: a line for each, its fence first
)

// environment returns the environment of the child: pawl's own without the hidden
// variables, plus the locks under which the child runs.
func (j *job) environment(l jobLease) []string {
	hidden := append([]string{nameVariable, fenceVariable, fencesVariable, keyVariable}, j.hidden...)
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return slices.Contains(hidden, key)
	})
	if j.key != "" {
		env = append(env, keyVariable+"="+j.key)
	}
	var fence uint64
	switch l := l.(type) {
	case *pawl.Lease:
		fence = l.Fence()
	case *pawl.GroupLease:
		fence = l.Fence(j.name)
		lines := fmt.Sprintf("%s=%d %s", fencesVariable, fence, j.name)
		for _, name := range j.also {
			lines += fmt.Sprintf("\n%d %s", l.Fence(name), name)
		}
		env = append(env, lines)
	}
	return append(env, nameVariable+"="+j.name, fmt.Sprintf("%s=%d", fenceVariable, fence))
}

// parentsFences returns the fences, by name, of the locks under which another pawl runs
// this one.
func parentsFences() map[string]uint64 {
	fences := map[string]uint64{}
	lines := os.Getenv(fencesVariable) + "\n" + os.Getenv(fenceVariable) + " " + os.Getenv(nameVariable)
	for line := range strings.SplitSeq(lines, "\n") {
		fence, name, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseUint(fence, 10, 64); err == nil {
			fences[name] = n
		}
	}
	return fences
}
