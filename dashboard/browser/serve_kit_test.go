package browser

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// command returns the path of the pawl command. Package dashboard's test has built it;
// otherwise command builds it once.
var command = sync.OnceValues(func() (string, error) {
	if built := os.Getenv("PAWL_COMMAND"); built != "" {
		return built, nil
	}
	folder, err := os.MkdirTemp("", "pawl-command-")
	if err != nil {
		return "", err
	}
	removeCommand = func() { _ = os.RemoveAll(folder) }
	path := filepath.Join(folder, "pawl")
	build := exec.Command("go", "build", "-C", "../..", "-buildvcs=false", "-o", path, "./cmd/pawl")
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the command cannot be built: %w\n%s", err, output)
	}
	return path, nil
})

var removeCommand = func() {}

// pawlCommand returns a command that has not started. The end of the test kills it.
func pawlCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path := must(command())(t)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // if the tests are killed
	return cmd
}

// servePage returns the address of the page of a `pawl serve`, which runs until the test
// ends.
func servePage(t *testing.T, args ...string) string {
	t.Helper()
	cmd := pawlCommand(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	out := must(cmd.StdoutPipe())(t)
	var output lines
	cmd.Stderr = &output
	noError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // the end of t.Context kills it; if not, this signal ends it
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("pawl serve: %v: %s", err, &output)
	}
	return strings.TrimSpace(url)
}
