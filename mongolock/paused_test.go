package mongolock

import (
	"testing"

	"github.com/pawl-go/pawl/internal/servertest"
)

func TestAServerThatIsPaused(t *testing.T) {
	t.Parallel()
	server, db := ferret(t), database()
	servertest.StandsStill(t, open(t, server.at(server.addr, db)), open(t, server.at(server.addr, db)), server.Pause, server.Resume)
}
