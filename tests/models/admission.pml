/*
 * Admission, settling, grace and cancellation of three producers, a device and one budget, for
 * spin. Each part names the function that it stands for. One long file, because it holds one set of
 * states: whoever changes a state must wake the right sleeper.
 *
 * An atomic block is a step that holds Admission::mutex_ or the pool's lock throughout; between two
 * steps every order is searched. Memory is counted in a few units without sizes. A batch takes one
 * unit, then the rest, and frees all of it, which awaits the device; then it closes. Its estimate is
 * what it takes. A grace ends (`timeout`) only where nothing else can happen.
 *
 * The line keeps nothing of a producer between two of its batches. So each batch stands as well for
 * one of a thread that comes once and never returns.
 *
 * Left out: the clock (a soft limit of two batches stands for RunAheadLimit; the patience of the first
 * in line is a delay, as there may be between any two steps), learning, weights, more streams than
 * one, points that could not be recorded, batches that are never closed (Ledger::take_forgotten),
 * handover on the device.
 *
 * Switches, with -D; check.py has those that are searched:
 *   BUDGET    units of memory
 *   SIZES     a,b,c: what a batch of each producer takes, at most BUDGET + 1
 *   ROUNDS    batches of each producer; 0: for ever
 *   LIVE      bytes that belong to no batch; somebody frees them at any moment
 *   PAIR      producer 0 frees nothing before producer 1 has closed a batch: where both do not fit,
 *             only the end of a grace helps
 *   CANCEL    the stop of any one producer is requested at any moment, or never
 *   TRUTHFUL  every batch fits in the budget: none may run out of memory or need a grace
 *   WATCHED   the producer whose place in the line must not last for ever (ltl line)
 *   ONCE      a producer that never returns after its first batch, while the others go on
 *   COARSE    fewer and longer steps, for long searches
 * Faults, each of which a search has to find: LOST_WAKEUP, SETTLE_BEFORE_FREES, OLD_RULE,
 * WAIT_WITH_NOTHING_IN_FLIGHT, MISSED_FREE, MISSED_ALLOCATION, DOUBLE_SETTLE, LAST_FIRST,
 * SMALLEST_FIRST.
 */
#ifndef BUDGET
#define BUDGET 4
#endif
#ifndef SIZES
#define SIZES 2, 3, 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifdef ONCE
#define BATCHES(p) (p == ONCE -> 1 : ROUNDS)
#else
#define BATCHES(p) ROUNDS
#endif
#ifndef LIVE
#define LIVE 0
#endif
#ifndef RUN_AHEAD
#define RUN_AHEAD 2
#endif

/* What lies between two steps of a search in every detail, and between none of a coarse one. */
#ifdef COARSE
#define FINE(x)
#else
#define FINE(x) x
#endif

#define N 3
#define NOBODY 9
#define QUEUE 4          /* three submitted, and one to see that it is never needed */

byte size[N] = { SIZES };

/* The pool's books (allocator): what the batches hold, and what they freed and the device has not
 * passed. */
short held = LIVE;       /* Pressure::held */
byte outside = LIVE;     /* held by no batch */
byte allocated[N];       /* by the producer's batch */
byte awaiting[N];        /* freed by the producer's open batch */
byte left[QUEUE];        /* freed by each submitted batch */

/* Ledger. */
bool is_open[N];
byte net[N];             /* Ticket::net */
byte freed[N];           /* Ticket::awaiting of the open batch */
byte age[N];             /* Ticket::serial in the order of opening: the oldest has 1 */
bool lapsed[N];          /* Ticket::lapsed */
short reserved;          /* the sum of all charges, kept step by step; the search compares it */
byte owed[QUEUE];        /* Ticket::awaiting of each submitted batch */
byte queued;             /* Ledger::submitted */

/* FairLine. Tags are relative to the virtual time. */
byte place[N];           /* arrival in the line: the longest there has 1; 0: not in it */
byte tag[N];

/* Admission. */
bool locked;             /* mutex_ is held over several steps */
byte waits_for_open = NOBODY;
bool nudged[N];          /* InLine::nudged */
bool grace_over[N];      /* Applicant::grace_over */
bool blocked[N];         /* in Admission::blocked_ */
bool has_news[N];
bool fails[N];
bool unfreed[N];         /* this producer has read given_back_, which has not grown since */
bool stop[N];            /* BatchOptions::stop */

/* The device: how many of the submitted batches it has passed. */
byte passed;
byte seen[N];            /* what this producer's settle() has read of that */
byte awaits[N];          /* position of the submitted batch that this producer waits for */

byte finished;               /* producers that have ended */
byte closed_by[N];
bool forced;

#define OPEN (is_open[0] + is_open[1] + is_open[2])
#define ALLOCATED (allocated[0] + allocated[1] + allocated[2])
#define AWAITING (awaiting[0] + awaiting[1] + awaiting[2] + left[0] + left[1] + left[2] + left[3])
#define OWED (owed[0] + owed[1] + owed[2] + owed[3])
/* Of the queue, what the device has passed and the pool would get back at its next look. */
#define PASSED_(i) (passed > i -> left[i] : 0)
#define PASSED (PASSED_(0) + PASSED_(1) + PASSED_(2) + PASSED_(3))
#define MORE(a, b) ((a) > (b) -> (a) : (b))

/* Ledger::charge, ::unspent, ::allocated. */
#define CHARGE(p) (is_open[p] -> (lapsed[p] -> net[p] : MORE(size[p], net[p])) : 0)
#define UNSPENT_(p) (CHARGE(p) - (is_open[p] -> net[p] : 0))
#define UNSPENT (UNSPENT_(0) + UNSPENT_(1) + UNSPENT_(2))
#define NET (net[0] + net[1] + net[2])
/* AdmissionRules::live. */
#define LIVE_SEEN(h, a) MORE((h) - (a) - NET, 0)

/* FairLine::first: the smallest tag, and of equal ones the first to arrive. */
#ifdef LAST_FIRST                    /* whoever came last goes first */
#define BEFORE(q, p) (place[q] > place[p])
#else
#define BEFORE(q, p) (place[q] != 0 && (tag[q] < tag[p] || (tag[q] == tag[p] && place[q] < place[p])))
#endif
#define FIRST(p) (place[p] != 0 && !BEFORE((p + 1) % N, p) && !BEFORE((p + 2) % N, p))

/* has_room of admission_decision.hpp, where `h` is held and `a` awaits the device. */
#define HAS_ROOM(p, h, a) \
  ((h) + UNSPENT + size[p] <= BUDGET || (OPEN == 0 && LIVE_SEEN(h, a) + size[p] <= BUDGET))

#ifdef OLD_RULE                      /* nothing is submitted: admitted, whatever open batches were promised */
#define ALONE (queued == 0)
#else
#ifdef WAIT_WITH_NOTHING_IN_FLIGHT   /* as any other: no room is a reason to wait */
#define ALONE false
#else
#define ALONE (queued == 0 && OPEN == 0)
#endif
#endif
/* decide of admission_decision.hpp, for the first in line. */
#define ENOUGH (queued > 0 && queued + OPEN >= RUN_AHEAD)
#define ADMISSIBLE(p, h, a) (ALONE || (HAS_ROOM(p, h, a) && !ENOUGH))
#define WAITS_FOR_OPEN(p, h, a) (!ALONE && !HAS_ROOM(p, h, a) && queued == 0)
/* Whoever sleeps until the end of a grace has nothing else to do. */
#define nudged_in_time(p) (!FIRST(p) || WAITS_FOR_OPEN(p, held, AWAITING))

/* A producer's next allocation: one unit, then the rest. */
#define NEXT(p) (allocated[p] == 0 -> 1 : size[p] - 1)

hidden byte i_;
hidden byte j_;
hidden byte youngest_;
hidden byte stuck_;

/* The ledger: nothing is negative, sums are sums, and the pool never exceeds its budget. */
inline check_books() {
  assert(held >= 0 && held <= BUDGET);
  assert(held == outside + ALLOCATED + AWAITING);
  assert(reserved >= 0);
  assert(reserved == CHARGE(0) + CHARGE(1) + CHARGE(2) + OWED);
}

/* Admission::wake_first. A lost wake-up: who leaves the line tells nobody. */
inline wake_first() {
#ifndef LOST_WAKEUP
  for (i_ : 0 .. N - 1) { nudged[i_] = nudged[i_] || FIRST(i_) }
#endif
  skip
}

/* Admission::wake_who_waits_for_open. `now`: the freed memory awaits the device, and the waiter does not poll. */
inline wake_who_waits_for_open(now) {
  if
  :: waits_for_open != NOBODY && (now || !FIRST(waits_for_open) || stop[waits_for_open] ||
                                  !WAITS_FOR_OPEN(waits_for_open, held, AWAITING)) ->
    nudged[waits_for_open] = true
  :: else
  fi
}

/* Admission::wake_blocked. `whole`: wakes only those that fit beside what is allocated. */
inline wake_blocked(whole) {
  for (i_ : 0 .. N - 1) {
    has_news[i_] = has_news[i_] ||
      (blocked[i_] && !(whole && NEXT(i_) > BUDGET - outside - ALLOCATED))
  }
}

/* who_fails of admission_decision.hpp, and Admission::fail_youngest. */
inline fail_youngest() {
  youngest_ = NOBODY;
  stuck_ = 0;
  for (i_ : 0 .. N - 1) {
    if
    :: blocked[i_] ->
      stuck_++;
      if
      :: has_news[i_] -> stuck_ = NOBODY + N
      :: else
      fi;
      if
      :: youngest_ == NOBODY -> youngest_ = i_
      :: youngest_ != NOBODY && age[i_] > age[youngest_] -> youngest_ = i_
      :: else
      fi
    :: else
    fi
  }
  if
  :: youngest_ != NOBODY && stuck_ == OPEN ->
    has_news[youngest_] = true;
    fails[youngest_] = true
  :: else
  fi
}

/* given_back_.fetch_add. */
inline count_given_back() {
  for (i_ : 0 .. N - 1) { unfreed[i_] = false }
}

/* MemoryStatistics::poll: what the device has passed reaches the pool. */
inline poll() {
  held = held - PASSED;
  for (i_ : 0 .. QUEUE - 1) { left[i_] = (i_ < passed -> 0 : left[i_]) }
}

/* FairLine::join. */
inline join(p) {
  place[p] = 1 + (place[(p + 1) % N] != 0) + (place[(p + 2) % N] != 0);
  tag[p] = size[p]
}

/* FairLine::leave. */
inline leave(p) {
  for (i_ : 0 .. N - 1) { place[i_] = place[i_] - (place[i_] > place[p]) }
  place[p] = 0;
  tag[p] = 0
}

/* FairLine::serve. The virtual time moves on to the tag of `p`. */
inline serve(p) {
#ifndef SMALLEST_FIRST               /* it stands still */
  j_ = tag[p];
  for (i_ : 0 .. N - 1) { tag[i_] = MORE(tag[i_] - j_, 0) }
#endif
  leave(p)
}

/* AdmissionRules::admit: Ledger::open, FairLine::serve. */
inline admit(p) {
  age[p] = OPEN + 1;
  is_open[p] = true;
  lapsed[p] = false;
  reserved = reserved + size[p];
  serve(p);
  wake_first();
  check_books()
}

/* Decisions of admission_decision.hpp. The soft limit and the hard one both wait for the device. */
#define ADMIT 0
#define WAIT_TURN 1
#define WAIT_DEVICE 2
#define WAIT_OPEN 3
#define FORCE 4
#define REFUSE 5
inline decide(p) {
  decision = (stop[p] -> REFUSE : (!FIRST(p) -> WAIT_TURN : (ADMISSIBLE(p, held, AWAITING) -> ADMIT :
    (WAITS_FOR_OPEN(p, held, AWAITING) -> (grace_over[p] -> FORCE : WAIT_OPEN) : WAIT_DEVICE))));
  assert(decision != WAIT_DEVICE || queued > 0)   /* a wait for the device is for submitted work */
}

/* The charge of p's batch follows Ticket::net and Ticket::lapsed. */
inline charge_anew(p, now, lapses) {
  reserved = reserved - CHARGE(p);
  net[p] = now;
  lapsed[p] = lapses;
  reserved = reserved + CHARGE(p)
}

/* AdmissionRules::lapse_promises. */
inline force() {
#ifdef TRUTHFUL
  assert(false);              /* where every batch fits, nobody needs it */
#endif
  forced = true;
  for (i_ : 0 .. N - 1) {
    if
    :: is_open[i_] -> charge_anew(i_, net[i_], true)
    :: else
    fi
  }
}

/* Ledger::close, and whom that wakes. */
inline close(p) {
  for (i_ : 0 .. N - 1) { age[i_] = age[i_] - (age[i_] > age[p]) }
  reserved = reserved - CHARGE(p) + freed[p];
  is_open[p] = false;
  lapsed[p] = false;
  age[p] = 0;
  assert(queued < QUEUE - 1);
  left[queued] = awaiting[p];
#ifdef WATCHED   /* the line does not depend on the ledger: fewer states */
  reserved = reserved - freed[p];
#else
  owed[queued] = freed[p];
#endif
  freed[p] = 0;
  awaiting[p] = 0;
  queued++;
  closed_by[p] = closed_by[p] + (BATCHES(p) > 0);
  wake_who_waits_for_open(false);
  fail_youngest();
  check_books()
}

/* Ledger::settle: the `seen` first batches of the queue. */
inline settle_seen(p) {
  do
  :: seen[p] > 0 ->
    assert(left[0] == 0);     /* after its frees reached the pool */
    assert(queued > 0 && passed > 0);
    reserved = reserved - owed[0];
    for (i_ : 0 .. QUEUE - 2) {
      left[i_] = left[i_ + 1];
      owed[i_] = owed[i_ + 1]
    }
    left[QUEUE - 1] = 0;
    owed[QUEUE - 1] = 0;
    queued--;
    passed--;
    seen[p]--;
    for (i_ : 0 .. N - 1) {
      seen[i_] = seen[i_] - (i_ != p && seen[i_] > 0);
      awaits[i_] = awaits[i_] - (awaits[i_] > 0)
    }
#ifdef DOUBLE_SETTLE
    if
    :: queued > 0 && passed == 0 -> reserved = reserved - owed[0]
    :: else
    fi;
#endif
  :: else -> break
  od;
  check_books()
}

/* Admission::settle: first reads what the device has passed, then lets the pool look, then settles. */
inline settle(p) {
  if
  :: passed == 0
  :: passed > 0 ->
#ifdef SETTLE_BEFORE_FREES
    atomic { poll() }
    seen[p] = passed;
    atomic { !locked -> settle_seen(p) }
#else
    atomic {
      seen[p] = passed;
    FINE(} atomic {)
      poll();
    FINE(} atomic { !locked ->)
      settle_seen(p)
    }
#endif
  fi
}

active [N] proctype Producer() {
  byte decision;         /* what decide() returned */
  bool looks_again;      /* InLine::looks_again: polls, since the device wakes nobody */

  do
  :: BATCHES(_pid) > 0 && closed_by[_pid] == BATCHES(_pid) -> break
  :: else ->

look:
    settle(_pid);
    atomic {                                       /* Admission::try_admit */
      !locked ->
      unfreed[_pid] = true;
      if
      :: place[_pid] == 0 -> join(_pid)
      :: else
      fi;
      waits_for_open = (waits_for_open == _pid -> NOBODY : waits_for_open);
      nudged[_pid] = false;
      decide(_pid);
      if
      :: decision == WAIT_OPEN -> locked = true    /* held through the next two steps */
      :: decision == FORCE -> force()
      :: else -> grace_over[_pid] = false; unfreed[_pid] = false
      fi;
      if
      :: decision == WAIT_TURN -> wake_first()
      :: else
      fi;
      if
      :: decision == ADMIT || decision == FORCE ->
        grace_over[_pid] = false;
        unfreed[_pid] = false;
        admit(_pid)
      :: else
      fi
    }
    if
    :: decision == ADMIT || decision == FORCE -> goto admitted
    :: decision == REFUSE -> goto cancelled
    :: decision == WAIT_TURN ->                    /* Admission::wait_for_others */
      (nudged[_pid] || stop[_pid]);
      goto look
    :: decision == WAIT_DEVICE ->                  /* Admission::wait_for_device, Ledger::point_to_await */
      atomic { !locked -> awaits[_pid] = (passed < queued -> passed + 1 : 0) }
      atomic { passed >= awaits[_pid] || stop[_pid] -> awaits[_pid] = 0 }
      goto look
    :: decision == WAIT_OPEN                       /* Admission::wait_for_open */
    fi;
    atomic {
      assert(OPEN > 0);                            /* there is something to wait for */
      waits_for_open = _pid;
    FINE(} atomic {)
#ifndef MISSED_FREE
      nudged[_pid] = nudged[_pid] || !unfreed[_pid];
#endif
      unfreed[_pid] = false;
      locked = false;
    FINE(} atomic { !locked ->)
      looks_again = (AWAITING > 0)
    }
    if
    :: nudged[_pid] || stop[_pid]
    :: looks_again && (!FIRST(_pid) || !WAITS_FOR_OPEN(_pid, held - PASSED, AWAITING - PASSED))
    :: atomic {
         timeout ->
         assert(nudged_in_time(_pid));
         grace_over[_pid] = true
       }
    fi;
    looks_again = false;
    goto look;

admitted:
    do                                             /* TensorMemory::allocate */
    :: allocated[_pid] == size[_pid] -> break
    :: allocated[_pid] < size[_pid] ->
again:
      atomic {
        poll();
        if
        :: held + NEXT(_pid) <= BUDGET ->
          held = held + NEXT(_pid);
          allocated[_pid] = allocated[_pid] + NEXT(_pid);
          goto note
        :: held + NEXT(_pid) > BUDGET && NEXT(_pid) <= BUDGET && AWAITING > 0 ->
          goto pool_waits
        :: else ->                                 /* no submitted work helps */
          unfreed[_pid] = true                     /* MemoryWait::looked */
        fi
      }
      atomic {                                     /* Admission::await_memory */
        !locked ->
        if
        :: NEXT(_pid) > BUDGET -> unfreed[_pid] = false; goto failed
        :: else
        fi;
        blocked[_pid] = true;
        has_news[_pid] = !unfreed[_pid];
        unfreed[_pid] = false;
        fail_youngest()
      }
      if
      :: has_news[_pid] || stop[_pid]
      :: timeout                                   /* the end of its grace */
      fi;
      atomic {
        !locked ->
        blocked[_pid] = false;
        if
        :: has_news[_pid] && !fails[_pid] -> has_news[_pid] = false; goto again
        :: else
        fi;
        has_news[_pid] = false;
        fails[_pid] = false;
        fail_youngest();
        goto failed
      }
pool_waits:                                        /* the pool's wait for submitted work */
      if
      :: held - PASSED + NEXT(_pid) <= BUDGET || AWAITING == PASSED -> goto again
      :: stop[_pid] -> goto failed
      fi;
note:
      atomic {                                     /* Admission::note_allocated */
        !locked ->
        charge_anew(_pid, allocated[_pid], false);
#ifndef MISSED_ALLOCATION
        wake_who_waits_for_open(false);
#endif
        check_books()
      }
    od;
#ifdef PAIR
    if
    :: _pid != 0 || closed_by[1] > 0 || stop[1] || stop[0]
    fi;
#endif
    goto give;
failed:
#ifdef TRUTHFUL
    assert(stop[_pid]);                            /* nobody runs out */
#endif
give:
    atomic {                                       /* Pool::deallocate */
      awaiting[_pid] = awaiting[_pid] + allocated[_pid];
      allocated[_pid] = 0;
    FINE(} atomic { !locked ->)                    /* Admission::note_freed */
      freed[_pid] = net[_pid];
      charge_anew(_pid, 0, lapsed[_pid]);
      count_given_back();
      wake_who_waits_for_open(true);
      wake_blocked(true);
      check_books()
    }
    atomic {                                       /* Admission::close, AdmissionRules::close */
      !locked -> close(_pid)
    }
  od;
  goto ended;
cancelled:
  atomic {                                         /* Admission::InLine::~InLine */
    !locked ->
    leave(_pid);
    waits_for_open = (waits_for_open == _pid -> NOBODY : waits_for_open);
    wake_first()
  }
ended:
  finished++
}

/* Passes what open batches freed, and submitted batches in their order, at any moment. */
active proctype Device() {
end:
  do
  :: atomic { passed < queued -> passed++ }
  :: atomic { awaiting[0] > 0 -> held = held - awaiting[0]; awaiting[0] = 0; check_books() }
  :: atomic { awaiting[1] > 0 -> held = held - awaiting[1]; awaiting[1] = 0; check_books() }
  :: atomic { awaiting[2] > 0 -> held = held - awaiting[2]; awaiting[2] = 0; check_books() }
  od
}

#if LIVE > 0
/* Frees memory that belongs to no batch. */
active proctype Outside() {
  atomic { held = held - outside; outside = 0 }    /* Pool::deallocate */
  atomic { count_given_back() }                    /* Admission::note_given_back */
  if
  :: waits_for_open == NOBODY && !blocked[0] && !blocked[1] && !blocked[2]   /* listeners_ */
  :: else ->
    atomic {
      !locked ->
      wake_who_waits_for_open(false);
      wake_blocked(false)
    }
  fi
}
#endif

#ifdef CANCEL
/* Requests the stop of one producer. */
active proctype Stopper() {
  bool later;
  byte who;
  select(who : 0 .. N - 1);
  if
  :: later = false
  :: later = true      /* once a batch was forced in, which never happens where all is well */
  :: goto spared
  fi;
end:
  (forced || !later);
  stop[who] = true;
spared:
  skip
}
#endif

#if ROUNDS > 0
/* Scheduler::wait_all, and what has to hold when nothing runs. */
active proctype WaitAll() {
  (finished == N);
  do
  :: queued == 0 -> break
  :: queued > 0 ->
    (passed > 0);
    seen[0] = passed;
    atomic { poll() }
    atomic { settle_seen(0) }
  od;
  atomic {
    (AWAITING == 0);
    check_books();
    assert(reserved == 0 && OPEN == 0 && NET == 0 && ALLOCATED == 0);
    assert(held == outside);
    assert(place[0] + place[1] + place[2] == 0);
    assert(waits_for_open == NOBODY)
  }
}
#endif

/* The line is alive: whoever stands in it leaves it, admitted or cancelled. */
#ifdef WATCHED
ltl line { []<> (place[WATCHED] == 0) }
#endif
