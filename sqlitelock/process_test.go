package sqlitelock

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAProcessMayBeKilledAtAnyMoment kills writers again and again. The file must stay
// intact, its entries readable, and the granted fences must only rise.
func TestAProcessMayBeKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	highest := map[string]uint64{} // of all printed fences; a child's last lines may stay in its pipe
	for range rounds {
		var cmds []*exec.Cmd
		var outs []*bufio.Scanner
		for range 3 {
			cmd, out := spawn(t, "cycle", path)
			cmds, outs = append(cmds, cmd), append(outs, out)
		}
		if !outs[0].Scan() {
			t.Fatal("a child printed nothing")
		}
		time.Sleep(rand.N(20 * time.Millisecond)) // a random moment
		for _, cmd := range cmds {
			_ = cmd.Process.Kill()
		}
		for i, out := range outs {
			seen := map[string]uint64{}
			for more := true; more; more = out.Scan() {
				name, number, found := strings.Cut(out.Text(), "=")
				fence, err := strconv.ParseUint(number, 10, 64)
				if !found || err != nil || fence < 1<<40 {
					continue // nothing yet, or a line that the kill cut
				}
				if fence <= seen[name] {
					t.Fatalf("%s: fence %d came after %d", name, fence, seen[name])
				}
				seen[name] = fence
			}
			for name, fence := range seen {
				highest[name] = max(highest[name], fence)
			}
			_ = cmds[i].Wait()
		}

		d := open(t, path, nil)
		findsNothing(t, d)
		for name, fence := range highest {
			if e, err := d.Inspect(ctx, name); err != nil || e.Fence < fence {
				t.Fatalf("%s: the last fence fell from %d to %d, %v", name, fence, e.Fence, err)
			}
		}
		noError(t, d.Close())
	}
}

func TestProcessesExcludeEachOther(t *testing.T) {
	path := newPath(t)
	noError(t, os.WriteFile(path+".count", []byte("0"), 0o600))
	var cmds []*exec.Cmd
	for range 3 {
		cmd, _ := spawn(t, "count", path)
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		noError(t, cmd.Wait())
	}
	if b, err := os.ReadFile(path + ".count"); err != nil || string(b) != "600" {
		t.Fatalf("after 600 additions the number is %s (%v)", b, err)
	}
}
