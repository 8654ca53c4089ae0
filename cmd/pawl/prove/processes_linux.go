package prove

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// descendants lists the children of a process, their children, and so on. Some servers,
// for example PostgreSQL, put their children into other process groups.
func descendants(pid int) (all []int) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		_, after, ok := bytes.Cut(text, []byte(") "))
		fields := bytes.Fields(after)
		if err != nil || !ok || len(fields) < 2 {
			continue // it has ended
		}
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(string(fields[1]))
		children[parent] = append(children[parent], child)
	}
	for next := children[pid]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children[next[0]]...)
	}
	return all
}
