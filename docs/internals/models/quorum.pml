/*
 * A quorum of three nodes and two clients, as quorumlock has them. docs/internals/models/README.md says what in here stands for
 * what in the code, and what the runs of `make model` show.
 *
 * Checked whenever a client is shown its lease, in every order of steps that is possible:
 *   one      nobody else believes, in its own term, that it holds the name
 *   fences   its fence is higher than every fence that was shown before
 *
 * With -DONE only the first. With -DFENCES, for where two may hold: its fence is nobody else's, and higher than every
 * fence that had been shown when the claim was sent.
 *
 * Variants:
 *   -DNO_WRITEBACK  a fence is shown without bringing it to a majority first
 *   -DNO_CLOCK      fences count from 1; else a fresh one is the node's time, if that is more than the last one + 1
 *   -DNO_SKEW       all clocks show the same time; else that of one node may be ahead
 *   -DLOSS          one node dies at any moment, comes back without its data, and votes again when all leases of back
 *                   then are over
 *   -DNO_DELAY      it votes again a tick after it died
 */

#ifndef CLAIMS
#define CLAIMS 2   /* how often a client tries to get the name, both together */
#endif
#ifndef TTL
#define TTL 1      /* ticks that a lease lasts on a node */
#endif
#ifndef TICKS
#define TICKS 2    /* how long time passes */
#endif

#define N 3
#define MAJORITY 2
#define NOBODY 0

/* A node: what a backend stores of the one name there is. */
typedef node_t {
	byte last;      /* the last fence granted, or raised to */
	byte holder;    /* a token, or NOBODY */
	byte fence;     /* of the holder */
	byte expires;   /* on the clock below */
	byte skew;      /* its clock is so much ahead of true time */
	bool up
}
node_t node[N];

byte now;          /* true time; term and lease are counted on it, clocks drift within the margin that is left out here */
byte shown;        /* the highest fence that anybody was ever shown */
bool begun;
byte claims;       /* made so far; the number of a claim is its token */
#ifdef FENCES
int used;          /* the fences that were shown, as bits */
#endif
byte believes[2];  /* until when a client trusts its lease; 0 is not at all */

#define HELD(n) (node[n].holder != NOBODY && node[n].expires > now)

/* A fresh fence on node n. A tick is 4 fences long: clocks count faster than names are granted. */
#ifdef NO_CLOCK
#define CLOCK(n) 0
#else
#define CLOCK(n) (4 * (now + node[n].skew))
#endif
#define FRESH(n) (node[n].last + 1 > CLOCK(n) -> node[n].last + 1 : CLOCK(n))

/* One atomic step of a node: a claim of client c, with the answer in got[n]. Repeated, it answers with the same grant. */
inline ask(n) {
	if
	:: node[n].up && HELD(n) && node[n].holder == token ->
		node[n].expires = now + TTL; got[n] = node[n].fence
	:: node[n].up && !HELD(n) ->
		node[n].last = FRESH(n); node[n].fence = node[n].last;
		node[n].holder = token; node[n].expires = now + TTL; got[n] = node[n].fence
	:: else -> got[n] = 0 /* refused, or it does not answer */
	fi
}

/* RaiseFence: the fence of client c's claim on node n becomes f at the least; got[n] is what it is then. */
inline raise(n, f) {
	if
	:: node[n].up && HELD(n) && node[n].holder == token ->
		if
		:: node[n].fence < f -> node[n].fence = f; node[n].last = (node[n].last > f -> node[n].last : f)
		:: else
		fi;
		got[n] = node[n].fence
	:: else -> got[n] = 0
	fi
}

inline release(n) {
	if
	:: node[n].up && HELD(n) && node[n].holder == token -> node[n].holder = NOBODY; node[n].fence = 0; node[n].expires = 0
	:: else
	fi
}

#define COUNT ((got[0] > 0) + (got[1] > 0) + (got[2] > 0))
#define AGREE(f) ((got[0] == f) + (got[1] == f) + (got[2] == f))

proctype client(byte c) {
	byte got[N];
	byte todo, sent, f, token;
#ifdef FENCES
	byte seen; /* the highest fence that had been shown when the claim was sent */
#endif
	begun || c == 0; /* they are alike, so one may as well begin */
	begun = true;
	do
	:: atomic { claims < CLAIMS -> claims++; token = claims };
		d_step {
#ifdef FENCES
			seen = shown;
#endif
			sent = now; got[0] = 0; got[1] = 0; got[2] = 0; todo = 7; f = 0
		}

		/* The claim goes to all nodes. They get it in any order, and one of them may be out of reach. */
		do
		:: atomic { todo & 1 -> todo = todo - 1; ask(0) }
		:: atomic { todo & 2 -> todo = todo - 2; ask(1) }
		:: atomic { todo & 4 -> todo = todo - 4; ask(2) }
		:: todo == 0 || todo == 1 || todo == 2 || todo == 4 -> break /* one request is lost */
		:: atomic { todo == 1 -> ask(0); got[0] = 0; break }         /* or its answer is */
		:: atomic { todo == 2 -> ask(1); got[1] = 0; break }
		:: atomic { todo == 4 -> ask(2); got[2] = 0; break }
		od;

		if
		:: atomic { COUNT >= MAJORITY ->
			/* The highest of what they granted, */
			f = got[0];
			if :: got[1] > f -> f = got[1] :: else fi;
			if :: got[2] > f -> f = got[2] :: else fi;
#ifndef NO_WRITEBACK
			/* brought to those that have a lower one, of which any may miss it. */
			if :: got[0] > 0 && AGREE(f) < MAJORITY -> raise(0, f) :: true fi;
			if :: got[1] > 0 && AGREE(f) < MAJORITY -> raise(1, f) :: true fi;
			if :: got[2] > 0 && AGREE(f) < MAJORITY -> raise(2, f) :: true fi;
			if :: AGREE(f) >= MAJORITY :: else -> f = 0 fi;
#endif
			got[0] = 0; got[1] = 0; got[2] = 0
		   }
		   /* It is shown, if there is any time left of the term, which counts from the sending. */
		   atomic {
			if
			:: f > 0 && sent + TTL > now ->
#ifdef FENCES
				assert(f > seen && !(used & (1 << f)));
				used = used | (1 << f);
				shown = (f > shown -> f : shown);
#else
#ifndef ONE
				assert(f > shown);
#endif
				assert(believes[1 - c] <= now);
				shown = (f > shown -> f : shown);
#endif
				believes[c] = sent + TTL
			:: else
			fi;
			f = 0; sent = 0
		   }
		   /* It works, and ends: by a release, by the end of its term, or by a crash in the middle. */
		   if
		   :: true
		   :: true -> goto crashed
		   fi
		:: else
		fi;
		/* Released on all nodes, of which any may miss it. */
		atomic {
			believes[c] = 0; got[0] = 0; got[1] = 0; got[2] = 0; todo = 0; f = 0; sent = 0;
			if :: release(0) :: true fi;
			if :: release(1) :: true fi;
			if :: release(2) :: true fi;
			token = 0
		}
	:: else -> break
	od;
crashed:
	atomic { token = 0; got[0] = 0; got[1] = 0; got[2] = 0; todo = 0; f = 0; sent = 0 } /* what it held stays until it expires; what it believes ends with its term */
}

/* What has expired is not looked at again; that it is there makes no difference but to the number of states. */
inline forget(n) {
	if
	:: node[n].expires <= now -> node[n].holder = NOBODY; node[n].fence = 0; node[n].expires = 0
	:: else
	fi
}

proctype time() {
	do
	:: now < TICKS -> atomic {
		now++;
		if :: believes[0] <= now -> believes[0] = 0 :: else fi;
		if :: believes[1] <= now -> believes[1] = 0 :: else fi;
		forget(0); forget(1); forget(2)
	}
	:: else -> break
	od
}

#ifdef LOSS
#ifdef NO_DELAY
#define BACK 1
#else
#define BACK (TTL + 1)
#endif
proctype loss() {
	byte died;
	atomic {
		died = now; node[0].up = false;
		node[0].last = 0; node[0].holder = NOBODY; node[0].fence = 0; node[0].expires = 0
	}
end:
	atomic { now >= died + BACK -> node[0].up = true }
}
#endif

init {
	atomic {
		byte i;
		for (i : 0 .. N - 1) {
			node[i].holder = NOBODY; node[i].up = true;
#ifndef NO_SKEW
			if :: i == N - 1 -> node[i].skew = 1 :: true fi
#endif
		}
		run time();
#ifdef LOSS
		run loss();
#endif
		run client(0); run client(1)
	}
}
