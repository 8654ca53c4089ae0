package screen

import "os"

// Windows has no Ctrl-Z.

func (*Screen) catchStops() {}

func (*Screen) signaled(os.Signal) {}

func (*Screen) suspend(bool) {}
