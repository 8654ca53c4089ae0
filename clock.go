package pawl

import "time"

// now reads the clocks. The client holds it as a field, so that a test can put a machine to sleep.
func now() reading { return reading{mono: time.Now(), boot: sinceBoot()} }
