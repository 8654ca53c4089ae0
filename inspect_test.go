package pawl_test

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestDiagnoseReturnsTheFindingsOfTheDriver(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, plain *pawl.Client, net *network) {
		isError(t, errOf(plain.Diagnose(background)), errors.ErrUnsupported)
		c := w.clientOf(diagnosable{net, []driver.Finding{{Severity: "warning", Subject: "disk"}}}, nil)
		if found, err := c.Diagnose(background); err != nil || len(found) != 1 || found[0].Subject != "disk" {
			t.Errorf("Diagnose returns %v, %v; want the finding about the disk", found, err)
		}
		net.down()
		isError(t, errOf(c.Diagnose(background)), pawl.ErrUnavailable)
		noError(t, c.Close())
		isError(t, errOf(c.Diagnose(background)), pawl.ErrClosed)
	})
}
