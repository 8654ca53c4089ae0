/*
 * A semaphore of two permits in a quorum of three nodes, with three claims for one permit each.
 * docs/internals/models/README.md says what in here stands for what in the code.
 *
 * Checked whenever a claim is shown: no more than two hold. In here time stands still: who holds
 * goes on by renewals for as long as a majority of the nodes has it.
 *
 * Variants:
 *   -DFAULTS=n   so many times a node forgets a claim; not one that exactly a majority has
 *   -DNO_COUNT   nobody is counted: a majority is enough
 *   -DHASTY      of those who have no majority nobody is counted, at the first look already
 *   -DLOWER      only those whose number on a node is lower than the agreed one are counted, in one look; in all others
 *                numbers are left out
 *   -DWISHES     with it: a node may give any number that is higher than all that it gave before
 */

#ifndef FAULTS
#define FAULTS 0
#endif
#define N 3
#define CLAIMS 3
#define LIMIT 2
#define MAJORITY 2
#ifndef MOST
#define MOST 6 /* the highest number there is */
#endif

typedef node_t {
	byte last;           /* the last number that it gave */
	byte number[CLAIMS]  /* of each claim that it has; 0 if it has not */
}
node_t node[N];

bool holds[CLAIMS];
byte faults = FAULTS;
byte begun;

#define HELD(n) ((node[n].number[0] > 0) + (node[n].number[1] > 0) + (node[n].number[2] > 0))
#define HAS(c) ((node[0].number[c] > 0) + (node[1].number[c] > 0) + (node[2].number[c] > 0))
#define BIT(n) (1 << n)

/* An Acquire. got is what was answered, 0 for a refusal. */
inline ask(n) {
	todo = todo - BIT(n);
	if
#ifndef LOWER
	:: node[n].number[c] == 0 && HELD(n) < LIMIT -> node[n].number[c] = 1
#else
	:: node[n].number[c] == 0 && HELD(n) < LIMIT && node[n].last < MOST ->
		node[n].last++;
#ifdef WISHES
		if
		:: node[n].last < MOST - 1 -> node[n].last = node[n].last + 2
		:: true
		fi;
#endif
		node[n].number[c] = node[n].last
#endif
	:: else
	fi;
	got[n] = node[n].number[c]
}

/* A node with a lower number raises it, and gives none that it gave before. */
inline raise(n) {
	if
	:: got[n] > 0 && got[n] < f && node[n].number[c] > 0 ->
		if
		:: node[n].last == node[n].number[c] || node[n].last < f -> node[n].number[c] = f
		:: else -> node[n].number[c] = node[n].last + 1
		fi;
		if
		:: node[n].number[c] > node[n].last -> node[n].last = node[n].number[c]
		:: else
		fi;
		got[n] = node[n].number[c]
	:: else
	fi
}

#define AGREED ((got[0] == f) + (got[1] == f) + (got[2] == f))

#ifdef LOWER
#define COUNTS(n, o) (o != c && node[n].number[o] > 0 && node[n].number[o] < f)
#else
#define COUNTS(n, o) (o != c && node[n].number[o] > 0)
#endif

#define ALL(n) ((COUNTS(n, 0) -> 1 : 0) | (COUNTS(n, 1) -> 2 : 0) | (COUNTS(n, 2) -> 4 : 0))

/* A reading of one node. on has three bits for each node: who was found there, at any look; seen who was found now. */
inline look(n) {
	todo = todo - BIT(n);
	if
	:: node[n].number[c] == f -> ours++
	:: else
	fi;
	seen = seen | ALL(n);
	on = on | (ALL(n) << (3 * n))
}

#define SEEN ((seen & 1) + ((seen >> 1) & 1) + ((seen >> 2) & 1))
#define ON(o) (((on >> o) & 1) + ((on >> (o + 3)) & 1) + ((on >> (o + 6)) & 1))
#define FIRM(o) (((seen >> o) & 1) && ON(o) >= MAJORITY -> 1 : 0)

inline leave() {
	holds[c] = false; todo = 0; got[0] = 0; got[1] = 0; got[2] = 0; f = 0; seen = 0; ours = 0; todo = 0;
	node[0].number[c] = 0; node[1].number[c] = 0; node[2].number[c] = 0
}

proctype client(byte c) {
	byte got[N];
	byte todo = 7;
	byte f, seen, ours;
	short on;
	begun == c; /* they are alike, so one may as well begin */
	begun++;
	/* The claim comes to the nodes in any order, and to some of them when it is long shown. */
	do
	:: atomic { todo & 1 -> ask(0) }
	:: atomic { todo & 2 -> ask(1) }
	:: atomic { todo & 4 -> ask(2) }
	:: atomic { (got[0] > 0) + (got[1] > 0) + (got[2] > 0) >= MAJORITY -> break }
	:: atomic { todo == 0 && (got[0] > 0) + (got[1] > 0) + (got[2] > 0) < MAJORITY -> goto refused }
	od;
	/* They agree on the highest number; who has a higher one than asked for has not. */
	atomic {
		f = got[0];
		if
		:: got[1] > f -> f = got[1]
		:: else
		fi;
		if
		:: got[2] > f -> f = got[2]
		:: else
		fi;
		raise(0); raise(1); raise(2);
		if
		:: AGREED < MAJORITY -> goto refused
		:: else
		fi;
		/* The nodes that have agreed are read, one after the other; of three, one is missed. */
		todo = 0;
		if
		:: got[0] == f -> todo = todo | 1
		:: else
		fi;
		if
		:: got[1] == f -> todo = todo | 2
		:: else
		fi;
		if
		:: got[2] == f -> todo = todo | 4
		:: else
		fi;
		if
		:: todo == 7 -> todo = 3
		:: todo == 7 -> todo = 5
		:: todo == 7 -> todo = 6
		:: else
		fi;
		got[0] = 0; got[1] = 0; got[2] = 0
	}
#ifndef NO_COUNT
	do
	:: atomic { todo & 1 -> look(0) }
	:: atomic { todo & 2 -> look(1) }
	:: atomic { todo & 4 -> look(2) }
	:: todo == 0 -> break
	od;
#ifdef HASTY
	if
	:: atomic { ours < MAJORITY || FIRM(0) + FIRM(1) + FIRM(2) >= LIMIT -> goto refused }
	:: atomic { ours >= MAJORITY && FIRM(0) + FIRM(1) + FIRM(2) < LIMIT }
	fi;
#else
	if
	:: atomic { ours < MAJORITY -> goto refused }
	:: atomic { ours >= MAJORITY && SEEN < LIMIT }
	:: atomic { ours >= MAJORITY && SEEN >= LIMIT ->
#ifdef LOWER
		goto refused }
#else
		/* Too many: it looks again, at all nodes. (Where one is missed, all count again, as in the first look.) */
		todo = 7; seen = 0; ours = 0 }
		do
		:: atomic { todo & 1 -> look(0) }
		:: atomic { todo & 2 -> look(1) }
		:: atomic { todo & 4 -> look(2) }
		:: todo == 0 -> break
		od;
		if
		:: atomic { ours < MAJORITY || FIRM(0) + FIRM(1) + FIRM(2) >= LIMIT -> goto refused }
		:: atomic { ours >= MAJORITY && FIRM(0) + FIRM(1) + FIRM(2) < LIMIT }
		fi
#endif
	fi;
#endif
#endif
	atomic {
		holds[c] = true; todo = 0; f = 0; seen = 0; ours = 0; on = 0;
		if
		:: HAS(c) < MAJORITY -> holds[c] = false /* it has lost a node meanwhile, as its first renewal will tell */
		:: else
		fi;
		assert(holds[0] + holds[1] + holds[2] <= LIMIT)
	}
	/* What is still under way arrives, and it asks again where it has no place; or it ends. */
	do
	:: atomic { holds[c] && node[0].number[c] == 0 -> todo = 1; ask(0); got[0] = 0 }
	:: atomic { holds[c] && node[1].number[c] == 0 -> todo = 2; ask(1); got[1] = 0 }
	:: atomic { holds[c] && node[2].number[c] == 0 -> todo = 4; ask(2); got[2] = 0 }
	:: atomic { true -> leave(); break }
	od;
	goto over;
refused:
	atomic { leave() }
over:
	skip
}

/* A node forgets a claim. A lease that stands on exactly a majority is not safe from that, see repair.pml. */
proctype fault() {
	byte n, c;
end:
	do
	:: atomic { faults > 0 ->
		select (n : 0 .. N - 1);
		select (c : 0 .. CLAIMS - 1);
		if
		:: node[n].number[c] && HAS(c) != MAJORITY -> node[n].number[c] = 0; faults--
		:: else
		fi;
		n = 0; c = 0 }
	od
}

init {
	atomic { run fault(); run client(0); run client(1); run client(2) }
}
