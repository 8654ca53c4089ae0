// Package check decides whether a history of pawl prove is right. It shares nothing with
// the product: it knows only what a lock promises, and what the history says.
//
// A rule is a file. It either finds that the history breaks the rule, or finds nothing. A
// rule never guesses against the lock: where the history leaves two readings, a rule
// takes the one that is in the lock's favour.
//
// A history can also be too poor to prove anything, because no fault did anything or no
// lease was lost. The package says that, too: see Verdict.Blind.
package check
