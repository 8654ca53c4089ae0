package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
)

// The variables by which a command knows under which lock it runs.
const (
	nameVariable  = "PAWL_NAME"
	fenceVariable = "PAWL_FENCE"
)

// environment is the child's: ours without the hidden variables, and which lock it runs
// under.
func environment(l *pawl.Lease, hidden ...string) []string {
	hidden = append(hidden, nameVariable, fenceVariable)
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return slices.Contains(hidden, key)
	})
	return append(env, nameVariable+"="+l.Name(), fmt.Sprintf("%s=%d", fenceVariable, l.Fence()))
}

// parent is the lock under which a pawl runs this one, if one does.
type parent struct {
	name  string
	fence uint64
}

func parentsFence() parent {
	fence, _ := strconv.ParseUint(os.Getenv(fenceVariable), 10, 64) // 0 is nobody's
	return parent{os.Getenv(nameVariable), fence}
}

// holds reports whether it is our parent that holds the name, which waits for our end.
// The fence says whether it is the same name on the same backend.
func (p parent) holds(e pawl.QueuedEvent) bool {
	h := e.Held.Holder
	return e.Name == p.name && p.fence > 0 && h.Fence == p.fence && !h.Released
}
