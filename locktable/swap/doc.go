// Package swap makes a [locktable.Table] of an engine that can only compare and swap: it
// has no transactions, or they cost a round trip for each statement.
//
// A backend implements [Store], and is then
//
//	d = locktable.New(swap.New(store, inbox, deliver), inbox)
//
// with the queue, fences and all kinds of locks of [locktable]. A [Clock] estimates the
// time of a server that sends it now and then.
package swap
