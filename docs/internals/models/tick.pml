/*
 * The clock that the clients of etcdlock keep, and one name: two clients, each of which claims, renews and ticks, in
 * every order, with transactions and answers that are as late as they like. docs/internals/models/README.md says what in here
 * stands for what in the code.
 *
 * Checked whenever a claim is written that found the other's lease expired: a TTL has passed since that one was
 * written. So nobody enters early.
 *
 * Variants, each without a part of the argument:
 *   -DNO_CAP      a reading stays as far ahead of a new tick as it was
 *   -DSKIPPED     it stays slip ahead, though it has missed the tick before
 *   -DNO_ROOM     a reading goes further than the last tick allows
 *   -DNO_WINDOW   a step is written whatever the last tick is by then
 *   -DBEHIND      a step is sent though the reading was put back since it was computed
 *   -DOVERTAKEN   a step is sent though a tick has come that is later than when it was computed
 *   -DNO_BLUR     a lease is stored to end a TTL after its reading
 *   -DNO_SLIP     it is stored to end without slip
 *   -DRESTING     steps are taken under a tick that leaves its successor all the room that there is
 *   -DFAST        the clock of the first client counts twice what passes
 *
 * With -DWIDE=n steps may be written under a tick of which the client has not heard, up to n later than their reading,
 * as those of a client far away are. Variants of that:
 *   -DNO_WIDTH    a lease is stored to end as if it was not so
 *   -DWIDE_REST   also under a tick of a clock at rest
 */

#ifndef END
#define END 6		/* of the world, in real time */
#endif
#define TTL 2
#define SPAN 2
#define REST 9
#define SLIP 1
#if defined(NO_BLUR)
#define BLUR 0
#elif defined(WIDE) && !defined(NO_WIDTH)
#define BLUR (WIDE + SPAN + SLIP)
#elif defined(NO_SLIP)
#define BLUR SPAN
#else
#define BLUR (SPAN + SLIP)
#endif

byte now;

/* The keys of clock and entry. Revisions are left out: who remembers one has a bit, which is cleared by a write. */
byte is = 1, room = SPAN;
byte holder, ends, written;

typedef client_t {
	byte is, room;		/* the tick that it received last */
	byte ahead;		/* how much further its reading would be if there was room */
	bool last;		/* it is the last one that was written */
	bool next;		/* the last one follows it */
	byte read;		/* a step is computed at this reading; 0: none */
	bool from;		/* the entry is as it was then */
	/* A transaction. */
	byte way;		/* 0: none, 1: to the server, 2: its answer comes back */
	bool on;		/* the last tick is the one that it was sent under */
	byte tick, left;	/* it writes a tick with this much room; 0: none */
	byte until;		/* it writes the entry, with this end; 0: it does not */
#ifdef WIDE
	byte latest;		/* it is taken under ticks up to this one; 0: under the one that it was sent under */
#endif
}
client_t c[2];

#ifdef NO_ROOM
#define READING(i) (c[i].is + c[i].ahead)
#else
#define READING(i) (c[i].is + (c[i].ahead < c[i].room -> c[i].ahead : c[i].room))
#endif

#ifdef WIDE
#ifdef WIDE_REST
#define LATER(i) (c[i].latest && is <= c[i].latest)
#else
#define LATER(i) (c[i].latest && is <= c[i].latest && room == SPAN)
#endif
#else
#define LATER(i) false
#endif

/* What nobody looks at makes no difference. */
inline clear(i) {
#ifdef WIDE
	c[i].latest = 0;
#endif
	c[i].way = 0; c[i].on = false; c[i].tick = 0; c[i].left = 0; c[i].until = 0; c[i].read = 0; c[i].from = false
}

/* A tick is received: the reading is put to no less than it, and to no more than slip ahead of it. */
inline learn(i) {
	c[i].ahead = (c[i].is + c[i].ahead > is -> c[i].is + c[i].ahead - is : 0);
#ifndef SKIPPED
	c[i].ahead = (c[i].next -> c[i].ahead : 0);
#endif
#ifndef NO_CAP
	c[i].ahead = (c[i].ahead > SLIP -> SLIP : c[i].ahead);
#endif
	c[i].is = is; c[i].room = room; c[i].last = true; c[i].next = false
}

/* A step that was computed is sent, under the last tick that was received; or it is computed anew. */
inline send(i) {
	if
#ifndef OVERTAKEN
	:: c[i].read < c[i].is -> clear(i)
#endif
#ifndef BEHIND
	:: c[i].read > READING(i) -> clear(i)
#endif
	:: else ->
		c[i].until = c[i].read + BLUR + TTL;
		if
#ifdef RESTING
		:: c[i].read < c[i].is + c[i].room
#else
#ifdef WIDE
		:: c[i].room == SPAN -> c[i].latest = c[i].read + WIDE
#else
		:: c[i].room == SPAN && c[i].read < c[i].is + SPAN
#endif
#endif
		/* It has to write a tick, or does because one is due. */
		:: c[i].tick = c[i].read; c[i].left = SPAN
		fi;
		c[i].way = 1; c[i].on = c[i].last; c[i].read = 0
	fi
}

inline arrives(i) {
	if
#ifdef NO_WINDOW
	:: (c[i].on || c[i].tick == 0) && (c[i].from || c[i].until == 0) ->
#else
	:: (c[i].on || LATER(i)) && (c[i].from || c[i].until == 0) ->
#endif
		if
		:: c[i].until ->
			assert(holder == 0 || holder == i + 1 || now >= written + TTL);
			holder = i + 1; ends = c[i].until; written = now; c[0].from = false; c[1].from = false
		:: else
		fi;
		if
		:: c[i].tick ->
			is = c[i].tick; room = c[i].left;
			c[0].next = c[0].last; c[1].next = c[1].last;
			c[0].on = false; c[1].on = false; c[0].last = false; c[1].last = false
		:: else
		fi
	:: else
	fi;
	clear(i)
}

proctype client(byte i) {
end:
	do
	/* It computes a claim, or a renewal, of the entry as it is: what it was refused is left out. */
	:: atomic { c[i].way == 0 && c[i].read == 0 && (holder == 0 || holder == i + 1 || ends <= READING(i)) ->
		c[i].read = READING(i); c[i].from = true }
	:: atomic { c[i].way == 0 && c[i].read -> send(i) }
	/* It ticks, for steps or for a rest. */
	:: atomic { c[i].way == 0 && c[i].read == 0 && c[i].last && READING(i) > c[i].is ->
		c[i].tick = READING(i); c[i].way = 1; c[i].on = true;
		if
		:: c[i].left = SPAN
		:: c[i].left = REST
		fi }
	:: atomic { c[i].way == 1 -> arrives(i) }
	/* It is lost. */
	:: atomic { c[i].way == 1 -> clear(i) }
	/* The watch, or an answer, tells of the last tick. */
	:: atomic { !c[i].last -> learn(i) }
	od
}

proctype time() {
end:
	do
	:: atomic { now < END -> now++;
#ifdef FAST
		c[0].ahead = c[0].ahead + 2;
#else
		c[0].ahead++;
#endif
		c[1].ahead++ }
	od
}

init {
	atomic {
		c[0].is = is; c[0].room = room; c[0].last = true;
		c[1].is = is; c[1].room = room; c[1].last = true;
		run time(); run client(0); run client(1)
	}
}
