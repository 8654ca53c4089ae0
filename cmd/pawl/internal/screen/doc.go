// Package screen draws on a terminal, and reads its keys.
//
// A [Screen] takes the terminal over: raw mode, the alternate screen, no cursor. It gives
// it back on every way out: [Screen.Close], a panic in a goroutine that [Screen.Go] runs,
// Ctrl-Z. What is drawn is a list of [Line]; only what differs from the last frame is
// sent.
//
// Whatever a text holds, what reaches the terminal is printable, one line, and as wide as
// it was counted: see [Width]. So who draws need not trust the names that others gave.
//
// No call waits for the terminal: one that takes nothing any more, as over a connection
// that hangs, misses frames, and keeps nobody from going on or from ending.
package screen
