// Package swap makes a [locktable.Table] of an engine that can compare and swap,
// and no more: one without transactions, or whose transactions cost a round trip each.
//
// A backend implements [Store], and is then
//
//	d = locktable.New(swap.New(store, inbox, deliver), inbox)
//
// with the queue, fences and all kinds of locks of [locktable]. A [Clock] keeps what the
// client knows of the clock of a server that states its time now and then.
package swap
