/*
 * An Acquire that was given up must never become a lease: one name on one backend, one claim that is asked for twice,
 * and taken back. Requests arrive in any order, and as late as they like. docs/internals/models/README.md says what in here
 * stands for what in the code.
 *
 * Checked when everything has arrived: the claim holds nothing.
 *
 * Variants:
 *   -DNO_END      an Acquire takes effect whenever it arrives
 *   -DONE         it is released at once, and not once more after the end
 *   -DLAST        once more only if the last of the two was not answered
 *   -DCLOCK_BACK  the backend's clock is set back by a tick, once
 *   -DTWICE       the network delivers an Acquire twice
 *   -DOVERTAKEN   the claim is asked for anew when it was released, as a waiter does that gives its place to an older one;
 *                 then checked: it still holds. -DON_TIME: that release has an end, and the claim waits for it
 */

#ifndef TICKS
#define TICKS 6
#endif

byte now;       /* on the client's clock */
byte back;      /* how far the backend's clock was set back */
byte until[3];   /* of the Acquires 1 and 2, and of the release 0 */
byte way[3];    /* how often each Acquire is still to arrive; 0: the first release */
byte again;     /* the second release, under way */
bool answered[3];
bool held;
bool over;

#define CLOCK (now - back)

inline arrives(a) {
	way[a]--;
#ifndef NO_END
	if
	:: CLOCK <= until[a] -> held = true; answered[a] = true
	:: else
	fi
#else
	held = true; answered[a] = true
#endif
}

inline send(a) {
	until[a] = now + 1;
#ifdef TWICE
	way[a] = 2
#else
	way[a] = 1
#endif
}

#define LATEST (until[1] > until[2] -> until[1] : until[2])

proctype client() {
	bool first, second; /* whether they were answered, as far as the client knows */
	atomic { send(1) }
	if
	:: atomic { answered[1] -> first = true }
	:: true /* given up */
	fi;
#ifdef OVERTAKEN
end_unanswered:
	atomic { first -> way[0] = 1; until[0] = now + 1 } /* it gives the name back, and is not answered */
#ifdef ON_TIME
	atomic { now > until[0] -> send(2) }
#else
	atomic { send(2) }
#endif
#else
	atomic { send(2) }
	if
	:: atomic { answered[2] -> second = true }
	:: true
	fi;
	way[0] = 1; /* released at once */
#ifndef ONE
#ifdef LAST
	if
	:: second -> skip
	:: else -> atomic { now > LATEST -> again = 1 }
	fi;
#else
	if
	:: first && second -> skip
	:: else -> atomic { now > LATEST -> again = 1 } /* and once more after the end */
	fi;
#endif
#endif
#endif
	over = true
}

proctype network() {
end:
	do
	:: atomic { way[1] -> arrives(1) }
	:: atomic { way[2] -> arrives(2) }
	:: atomic { way[0] -> way[0] = 0;
#ifdef ON_TIME
		if
		:: CLOCK <= until[0] -> held = false
		:: else
		fi
#else
		held = false
#endif
		}
	:: atomic { again -> again = 0; held = false }
	:: atomic { now < TICKS -> now++ }
#ifdef CLOCK_BACK
	:: atomic { back == 0 && now > 1 -> back = 1 }
#endif
	od
}

proctype look() {
end:
	atomic { over && !way[0] && !way[1] && !way[2] && !again ->
#ifdef OVERTAKEN
		assert(held || !answered[2])
#else
		assert(!held)
#endif
	}
}

init {
	atomic { run client(); run network(); run look() }
}
