// Package screen draws on a terminal, and reads its keys.
//
// A [Screen] takes over the terminal: raw mode, the alternate screen, no cursor. It
// restores the terminal in every case: [Screen.Close], a panic in a goroutine of
// [Screen.Go], Ctrl-Z. A frame is a list of [Line]; a Screen sends only the difference to
// the last frame.
//
// Any text is drawn in printable characters, on one line, and as wide as [Width] says. So
// callers need not trust names that other people chose.
//
// No call waits for the terminal. A terminal that takes no output, for example because
// its connection hangs, misses frames, but blocks neither the program nor its end.
package screen
