package sim

// ofStores are the bugs of engines that compare and swap.
var ofStores = []bug{
	{"a swap that takes effect outside of its window", "says that", 599, "store", func() planted {
		return planted{noWindows: true}
	}, arrivesLate},
	{"a swap that does not compare", "they hold it at once", 1, "store", func() planted {
		return planted{noVersions: true}
	}, nil},
}

// arrivesLate: claims are given up soon, half of what was sent arrives long after that,
// or never, and nobody else changes the name meanwhile.
func arrivesLate(p *plan) {
	p.faults, p.weather = nil, foul(p.unit)
	p.weather.slow, p.weather.lost = 50, 30
	p.processes = p.processes[:1]
	for _, w := range p.processes {
		for _, steps := range w.sessions {
			for k := range steps {
				steps[k].patience = p.unit / 20
			}
		}
	}
}
