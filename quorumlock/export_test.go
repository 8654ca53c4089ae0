package quorumlock

// Driver is the concrete type of the driver.
type Driver = quorum

// ForgetLead makes d propose its own time as a fence, as if the clocks of all nodes
// showed the same.
func (d *quorum) ForgetLead() { d.fenceLead.Store(0) }
