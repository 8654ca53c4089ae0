// Package screen draws on a terminal, and reads its keys.
//
// A [Screen] takes over the terminal: raw mode, the alternate screen, no cursor. It gives
// the terminal back on every way out: [Screen.Close], a panic in a goroutine of
// [Screen.Go], Ctrl-Z. A frame is a list of [Line]; a Screen sends only the difference to
// the last frame.
//
// The output of any text is printable, one line, and as wide as it was counted: see
// [Width]. So callers need not trust names that other people chose.
//
// No call waits for the terminal. A terminal that takes no output, as over a connection
// that hangs, misses frames, but does not keep the program from going on or from ending.
package screen
