package sim

// storeBugs are the bugs of engines with compare-and-swap.
var storeBugs = []bug{
	{"a swap that takes effect outside of its window", "says that", 599, "store", func() planted { return planted{noWindows: true} }, arrivesLate},
	{"a swap that does not compare", "hold the name at the same time", 1, "store", func() planted { return planted{noVersions: true} }, nil},
}

// arrivesLate: claims are soon given up. Half of the requests arrive long after that, or
// never, and no other call changes the name meanwhile.
func arrivesLate(p *plan) {
	p.faults, p.weather = nil, foul(p.unit)
	p.weather.slow, p.weather.lost = 50, 30
	p.processes = p.processes[:1]
	p.eachStep(func(s *step) { s.timeout = p.unit / 20 })
}
