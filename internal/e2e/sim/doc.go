// Package sim is a simulation of Pawl, in tests only. Clients of the root package use a
// network that loses, delays, reorders and repeats messages. The backends' clocks drift
// and jump, and they lose data where they may. Processes are paused and die. Everything
// happens in virtual time and depends only on a seed. A checker, which shares no code
// with the product, checks what the holders could see.
//
// Read it in this order:
//
//   - plan_test.go: the plan of a seed: processes, their steps, and faults
//   - weather_test.go, link_test.go, node_test.go, store_test.go, redis_test.go,
//     conn_test.go, clock_test.go: the network, the backends, and their clocks
//   - process_test.go, operation_test.go, fault_test.go: processes, calls and faults
//   - features_plan_test.go, features_do_test.go, abilities_test.go: the features above
//     the locks, in one schedule of three
//   - history_test.go, tap_test.go: the record of a schedule
//   - check_*_test.go: the rules that a record must follow
//   - world_test.go, run_test.go: the run of one schedule, and of many
//   - trace_test.go, runtimedice: why a seed is the same schedule each time
//   - cancel_test.go: every operation, cancelled at every moment at which something
//     happens
//   - planted_*_test.go: bugs that the checker has to find
//
// docs/internals/reliability.md says what the simulation contains and omits, which cases
// the checker excuses and why, and which bugs it found.
package sim
