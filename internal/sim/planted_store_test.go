package sim

// ofStores are the bugs of engines that compare and swap.
var ofStores = []bug{
	{"a swap that takes effect outside of its window", "says that", 315, "store", func() planted {
		return planted{noWindows: true}
	}, nil},
	{"a swap that does not compare", "they hold it at once", 1, "store", func() planted {
		return planted{noVersions: true}
	}, nil},
}
