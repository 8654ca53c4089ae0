/*
 * Votes that are lost, and votes that are repaired, in a quorum of three nodes with two claims for one name: renewals,
 * queues, hand-over by signal, a clock that jumps. docs/models/README.md says what in here stands for what in the code.
 *
 * Checked whenever a claim is shown, or goes on by a renewal, in every order of steps that is possible: the other one
 * does not believe, in its own term, that it holds the name. Fences are not in here.
 *
 * A claim is asked for again, or renewed, once a tick; a signal is heard at once, and may be acted on later.
 *
 * Variants:
 *   -DFAULTS=n      so many times a node forgets who holds the name: its clock jumps; -DFLUSH: it forgets the queue, too
 *   -DANYTIME       also while not all nodes have the same claim, for as long as its client may trust it; else only then
 *   -DRENEWED       the second time when a renewal has been answered by a majority since, and nothing is under way
 *   -DMISSED=n      so many requests of a claim do not reach their node
 *   -DREPAIR        a renewal that a majority has answered asks the other nodes once for the same claim
 *   -DSTANDOFF      what repairs is a place in the queue, if need be; else it is granted at once or never
 *   -DREVIVE        a renewal that is answered after the term is over extends it
 */

#ifndef TTL
#define TTL 2
#endif
#ifndef TICKS
#define TICKS 4
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef MISSED
#define MISSED 0
#endif

#define N 3
#define MAJORITY 2

/* A node: who holds the name, until when, and who waits for it; two claims need no more than one place. */
typedef node_t {
	byte holder;
	byte expires;
	byte waits
}
node_t node[N];

byte now;
byte faults = FAULTS;
byte missed = MISSED;
bool renewed_since = true;

/* The claims, 1 and 2. Bits stand for nodes. */
typedef claim_t {
	bool begun, shown, over;
	byte sent;      /* when it was asked for, or renewed */
	byte todo;      /* nodes that this request has not reached yet */
	byte votes;     /* nodes that are known to have granted it since it was asked for, by answer or by signal */
	byte no;        /* nodes that have it not, says a renewal */
	byte mend;      /* requests under way that repair it */
	byte believes   /* until when its client trusts it */
}
claim_t claim[3];

#define BIT(n) (1 << n)
#define HAS(x, n) (((x) >> n) & 1)
#define COUNT(x) (((x) & 1) + (((x) >> 1) & 1) + (((x) >> 2) & 1))
#define OTHER(c) (3 - c)
#define ASKING(c) (claim[c].begun && !claim[c].shown && !claim[c].over)

/* The name is free on node n: the claim that waits has it, for as long as its place, and is told. */
inline pass(n) {
	node[n].holder = node[n].waits; node[n].waits = 0;
	if
	:: node[n].holder ->
		node[n].expires = now + TTL;
		if /* a signal counts beside the answer of the last request */
		:: ASKING(node[n].holder) && !HAS(claim[node[n].holder].todo, n) ->
			claim[node[n].holder].votes = claim[node[n].holder].votes | BIT(n)
		:: else
		fi
	:: else -> node[n].expires = 0
	fi
}

/* An Acquire that queues. */
inline ask(c, n) {
	if
	:: node[n].holder == c -> node[n].expires = now + TTL; claim[c].votes = claim[c].votes | BIT(n)
	:: node[n].holder == 0 -> node[n].holder = c; node[n].expires = now + TTL; claim[c].votes = claim[c].votes | BIT(n)
	:: else -> node[n].waits = c
	fi
}

inline release(c, n) {
	if
	:: node[n].holder == c -> pass(n)
	:: node[n].waits == c -> node[n].waits = 0
	:: else
	fi
}

/* Reset what only a request needs, for fewer states. */
inline rest(c) { claim[c].todo = 0; claim[c].no = 0; claim[c].votes = 0 }

inline asked(c, n) {
	if
	:: HAS(claim[c].todo, n) ->
		claim[c].todo = claim[c].todo - BIT(n);
		if
		:: true -> ask(c, n)
		:: missed > 0 -> missed--
		fi
	:: else -> skip
	fi
}

inline renewed(c, n) {
	claim[c].todo = claim[c].todo - BIT(n);
	if
	:: node[n].holder == c -> node[n].expires = now + TTL; claim[c].votes = claim[c].votes | BIT(n)
	:: else -> claim[c].no = claim[c].no | BIT(n)
	fi
}

/* A repair arrives: no vote for the renewal that sent it. */
inline mended(c, n) {
	claim[c].mend = claim[c].mend - BIT(n);
	if
	:: node[n].holder == 0 -> node[n].holder = c; node[n].expires = now + TTL
	:: node[n].holder == c -> node[n].expires = now + TTL
#ifdef STANDOFF
	:: node[n].holder == OTHER(c) -> node[n].waits = c
#else
	:: node[n].holder == OTHER(c)
#endif
	fi
}

/* What is left when it ends, or its client dies: what the nodes have. */
inline ends(c) {
	claim[c].over = true; claim[c].believes = 0; claim[c].shown = false; claim[c].sent = 0; rest(c)
}

proctype client(byte c) {
	byte i;
end:
	do
	/* It asks, or asks again: what was known of the nodes is forgotten. */
	:: atomic { !claim[c].begun && (c == 1 || claim[1].begun) || ASKING(c) && claim[c].todo == 0 && claim[c].sent < now ->
		claim[c].begun = true; claim[c].sent = now; claim[c].votes = 0; claim[c].todo = 7 }
	:: atomic { ASKING(c) && HAS(claim[c].todo, 0) -> asked(c, 0) }
	:: atomic { ASKING(c) && HAS(claim[c].todo, 1) -> asked(c, 1) }
	:: atomic { ASKING(c) && HAS(claim[c].todo, 2) -> asked(c, 2) }

	/* Who has some votes and no majority may give one back, and queues again: whoever it is, and whatever it has seen. */
	:: atomic { ASKING(c) && COUNT(claim[c].votes) == 1 && claim[c].todo == 0 ->
		if
		:: HAS(claim[c].votes, 0) -> i = 0
		:: HAS(claim[c].votes, 1) -> i = 1
		:: HAS(claim[c].votes, 2) -> i = 2
		fi;
		claim[c].votes = 0; release(c, i); ask(c, i); i = 0 }

	/* A majority has granted it: it is shown, if there is any time left of its term, which counts from the sending. */
	:: atomic { ASKING(c) && COUNT(claim[c].votes) >= MAJORITY && claim[c].sent + TTL > now ->
		claim[c].shown = true; claim[c].believes = claim[c].sent + TTL;
		assert(claim[OTHER(c)].believes <= now);
		rest(c) }

	/* It is renewed. */
	:: atomic { claim[c].shown && claim[c].todo == 0 && claim[c].no == 0 && claim[c].votes == 0 && claim[c].sent < now && claim[c].believes > now ->
		claim[c].sent = now; claim[c].todo = 7 }
	:: atomic { claim[c].shown && HAS(claim[c].todo, 0) -> renewed(c, 0) }
	:: atomic { claim[c].shown && HAS(claim[c].todo, 1) -> renewed(c, 1) }
	:: atomic { claim[c].shown && HAS(claim[c].todo, 2) -> renewed(c, 2) }
	:: atomic { claim[c].shown && claim[c].todo == 0 && (claim[c].votes || claim[c].no) ->
		if
#ifdef REVIVE
		:: COUNT(claim[c].votes) >= MAJORITY && claim[c].sent + TTL > now ->
#else
		:: COUNT(claim[c].votes) >= MAJORITY && claim[c].believes > now ->
#endif
			if
			:: claim[c].sent + TTL > claim[c].believes -> claim[c].believes = claim[c].sent + TTL
			:: else
			fi;
			assert(claim[OTHER(c)].believes <= now);
#ifdef RENEWED
			renewed_since = true;
#endif
#ifdef REPAIR
			claim[c].mend = claim[c].mend | claim[c].no
#endif
		:: else
		fi;
		rest(c) }

	/* A repair comes, at any time, also when the claim is over: a second release has yet to follow it. */
	:: atomic { HAS(claim[c].mend, 0) -> mended(c, 0) }
	:: atomic { HAS(claim[c].mend, 1) -> mended(c, 1) }
	:: atomic { HAS(claim[c].mend, 2) -> mended(c, 2) }

	/* It ends: by a release, or with its client. */
	:: atomic { claim[c].begun && !claim[c].over && claim[c].todo == 0 ->
		ends(c);
		if
		:: release(c, 0); release(c, 1); release(c, 2)
		:: true
		fi }
	od
}

inline expire(n) {
	if
	:: node[n].holder && node[n].expires <= now -> pass(n)
	:: else
	fi
}

/* All nodes have the same claim, for as long as its client may trust it, and nothing is under way. */
#define LASTS(n, c) (node[n].holder == c && node[n].expires >= claim[c].sent + TTL)
#define HELD(c) (LASTS(0, c) && LASTS(1, c) && LASTS(2, c) && claim[OTHER(c)].votes == 0)
#define CALM (claim[1].todo == 0 && claim[2].todo == 0 && claim[1].mend == 0 && claim[2].mend == 0)
#define WHOLE (claim[1].todo == 0 && claim[2].todo == 0 && (HELD(1) || HELD(2)))

/* What was in no term any more makes no difference. */
inline tidy(c) {
	if
	:: claim[c].believes <= now -> claim[c].believes = 0
	:: else
	fi
}

proctype world() {
	byte n;
end:
	do
	:: atomic { now < TICKS ->
		now++; expire(0); expire(1); expire(2); tidy(1); tidy(2) }
#ifdef ANYTIME
	:: atomic { faults > 0 ->
#else
#ifdef RENEWED
	:: atomic { faults > 0 && renewed_since && (faults < FAULTS || WHOLE) && CALM -> renewed_since = false;
#else
	:: atomic { faults > 0 && WHOLE ->
#endif
#endif
		faults--;
		if
		:: n = 0
		:: n = 1
		:: n = 2
		fi;
#ifdef FLUSH
		node[n].waits = 0;
#endif
		pass(n); n = 0 }
	od
}

init {
	atomic { run world(); run client(1); run client(2) }
}
