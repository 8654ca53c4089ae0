/*
 * Votes that are lost, votes that are repaired, and signals that are read late, in a quorum of three nodes with two
 * claims for one name: renewals, queues, hand-over by signal, a clock that jumps. docs/internals/models/README.md says what in
 * here stands for what in the code.
 *
 * Checked whenever a claim is shown, or goes on by a renewal, in every order of steps that is possible: the other one
 * does not believe, in its own term, that it holds the name. Fences are not in here.
 *
 * A claim is asked for again, or renewed, once a tick. A node's signal is heard by the claim's driver at once, and
 * acted on at any later time. With -DSIGNALS, what comes of it is a signal of the driver's own, that a majority has
 * granted, which may be read when further attempts have been made and answered; then nothing is renewed.
 *
 * Variants:
 *   -DEARLIER       the name is held by a third claim at first, which ends at any time, on one node after the other
 *                   (in the order of their numbers, for nothing else tells them apart)
 *   -DFAULTS=n      so many times a node forgets who holds the name: its clock jumps; -DFLUSH: it forgets the queue, too
 *   -DANYTIME       also while not all nodes have the same claim, for as long as its client may trust it; else only then
 *   -DRENEWED       the second time when a renewal has been answered by a majority since, and nothing is under way
 *   -DMISSED=n      so many requests of a claim do not reach their node
 *   -DREPAIR        a renewal that a majority has answered asks the other nodes once for the same claim
 *   -DSTANDOFF      what repairs is a place in the queue, if need be; else it is granted at once or never
 *   -DREVIVE        a renewal that is answered after the term is over extends it
 *   -DSIGNALS       the driver's signals are in it; attempts are answered, and signals read while none is under way
 *   -DSTALE         what was said to be granted is still read after a later attempt was answered "held"
 *   -DUNHEARD       a node's signal counts, too, if the node has not answered the last attempt
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
#define EARLIEST 3 /* the claim that holds the name at first */

/*
 * A node: who holds the name, until when, and who waits for it. A place lasts a TTL from the last attempt that came to
 * the node, and what is passed on lasts as long as the place would have.
 */
typedef node_t {
	byte holder;
	byte expires;
	byte first, second;
	byte place[3]
}
node_t node[N];

byte now;
byte faults = FAULTS;
byte missed = MISSED;
bool renewed_since = true;

/* The claims, 1 and 2. Bits stand for nodes. */
typedef claim_t {
	bool begun, shown, over;
	bool under_way; /* an attempt has not been answered yet */
	bool said;      /* a signal says that a majority has granted it, and has not been read */
	byte sent;      /* when it was asked for, or renewed */
	byte kept;      /* when it was asked for, at the last attempt that was answered "held" */
	byte heard;     /* nodes that have answered the last attempt */
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

#ifdef UNHEARD
#define COUNTS(c, n) true
#else
#define COUNTS(c, n) HAS(claim[c].heard, n)
#endif

#ifdef SIGNALS
#define UNDER_WAY(c) claim[c].under_way
#define ANSWERED(c) (!claim[c].under_way && claim[c].todo == 0)
#else
#define UNDER_WAY(c) ASKING(c)
#define ANSWERED(c) (claim[c].todo == 0)
#endif

/* Who waits behind the first moves up. */
inline up(n) { node[n].first = node[n].second; node[n].second = 0 }

/* The name is free on node n: the claim that waits has it, for as long as its place, and is told. */
inline pass(n) {
	node[n].holder = node[n].first; node[n].expires = 0; up(n);
	if
	:: node[n].holder ->
		node[n].expires = node[n].place[node[n].holder];
		node[n].place[node[n].holder] = 0;
		if /* a signal counts beside the answer of the last request */
		:: ASKING(node[n].holder) && COUNTS(node[n].holder, n) ->
			claim[node[n].holder].votes = claim[node[n].holder].votes | BIT(n)
		:: else
		fi
	:: else
	fi
}

inline grant(c, n) { node[n].holder = c; node[n].expires = now + TTL; claim[c].votes = claim[c].votes | BIT(n) }

inline queue(c, n) {
	node[n].place[c] = now + TTL;
	if
	:: node[n].first == 0 -> node[n].first = c
	:: node[n].first && node[n].first != c -> node[n].second = c
	:: node[n].first == c
	fi
}

/* An Acquire that queues. */
inline ask(c, n) {
	claim[c].heard = claim[c].heard | BIT(n);
	if
	:: node[n].holder == c || node[n].holder == 0 -> grant(c, n)
	:: else -> queue(c, n)
	fi
}

inline release(c, n) {
	if
	:: node[n].holder == c -> pass(n)
	:: node[n].first == c -> node[n].place[c] = 0; up(n)
	:: node[n].second == c -> node[n].place[c] = 0; node[n].second = 0
	:: else
	fi
}

/* Reset what only a request needs, for fewer states. */
inline rest(c) {
	claim[c].todo = 0; claim[c].no = 0; claim[c].votes = 0;
	claim[c].heard = 0; claim[c].kept = 0; claim[c].said = false; claim[c].under_way = false
}

/* An attempt is answered "held": whatever was said to be granted before it is old. */
inline held(c) {
	claim[c].under_way = false; claim[c].kept = claim[c].sent;
#ifndef STALE
	claim[c].said = false
#endif
}

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
	:: node[n].holder && node[n].holder != c -> queue(c, n)
#else
	:: node[n].holder && node[n].holder != c
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
	/* It asks, or asks again: what was known of the nodes is forgotten, and what was said is not. */
	:: atomic { !claim[c].begun && (c == 1 || claim[1].begun) ||
		ASKING(c) && ANSWERED(c) && claim[c].sent < now ->
#ifdef SIGNALS
		claim[c].under_way = true;
#endif
		claim[c].begun = true; claim[c].sent = now; claim[c].votes = 0; claim[c].heard = 0; claim[c].todo = 7 }
	:: atomic { ASKING(c) && HAS(claim[c].todo, 0) -> asked(c, 0) }
	:: atomic { ASKING(c) && HAS(claim[c].todo, 1) -> asked(c, 1) }
	:: atomic { ASKING(c) && HAS(claim[c].todo, 2) -> asked(c, 2) }

#ifdef SIGNALS
	/* A majority has answered, and not granted it; or so few that nobody knows. */
	:: atomic { claim[c].under_way && COUNT(claim[c].heard) >= MAJORITY && COUNT(claim[c].votes) < MAJORITY &&
		(claim[c].todo == 0 || COUNT(claim[c].votes) + COUNT(claim[c].todo) < MAJORITY) -> held(c) }
	:: atomic { claim[c].under_way && COUNT(claim[c].heard) < MAJORITY && claim[c].todo == 0 -> claim[c].under_way = false }
#endif

	/* Who has some votes and no majority may give one back, and queues again: whoever it is, and whatever it has seen. */
	:: atomic { UNDER_WAY(c) && COUNT(claim[c].heard) >= MAJORITY && COUNT(claim[c].votes) == 1 && claim[c].todo == 0 ->
		if
		:: HAS(claim[c].votes, 0) -> i = 0
		:: HAS(claim[c].votes, 1) -> i = 1
		:: HAS(claim[c].votes, 2) -> i = 2
		fi;
		claim[c].votes = 0; release(c, i); ask(c, i); i = 0 }

	/* A majority has granted it: it is shown, if there is any time left of its term, which counts from the sending. */
	:: atomic { UNDER_WAY(c) && COUNT(claim[c].votes) >= MAJORITY && claim[c].sent + TTL > now ->
		claim[c].shown = true; claim[c].believes = claim[c].sent + TTL;
		assert(claim[OTHER(c)].believes <= now);
		rest(c) }

#ifdef SIGNALS
	/* A majority has passed it on, and the driver says so. It is read later, and trusted from the last answer "held" on. */
	:: atomic { ASKING(c) && !claim[c].under_way && !claim[c].said && COUNT(claim[c].votes) >= MAJORITY ->
		claim[c].said = true }
	:: atomic { ASKING(c) && !claim[c].under_way && claim[c].said && claim[c].kept + TTL > now ->
		claim[c].shown = true; claim[c].believes = claim[c].kept + TTL; claim[c].sent = claim[c].kept;
		assert(claim[OTHER(c)].believes <= now);
		rest(c) }
#endif

#ifndef SIGNALS
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

#endif

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
	:: node[n].second && node[n].place[node[n].second] <= now -> node[n].place[node[n].second] = 0; node[n].second = 0
	:: else
	fi;
	if
	:: node[n].first && node[n].place[node[n].first] <= now -> node[n].place[node[n].first] = 0; up(n)
	:: else
	fi;
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
		node[n].first = 0; node[n].second = 0; node[n].place[1] = 0; node[n].place[2] = 0;
#endif
		pass(n); n = 0 }
#ifdef EARLIER
	:: atomic { node[0].holder == EARLIEST -> pass(0) }
	:: atomic { node[1].holder == EARLIEST && node[0].holder != EARLIEST -> pass(1) }
	:: atomic { node[2].holder == EARLIEST && node[1].holder != EARLIEST -> pass(2) }
#endif
	od
}

init {
	atomic {
#ifdef EARLIER
		node[0].holder = EARLIEST; node[1].holder = EARLIEST; node[2].holder = EARLIEST;
		node[0].expires = TICKS + 1; node[1].expires = TICKS + 1; node[2].expires = TICKS + 1;
#endif
		run world(); run client(1); run client(2)
	}
}
