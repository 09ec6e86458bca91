/* SPDX-License-Identifier: MIT */
/*
 * Probes: places that bpftrace, perf and gdb can stop at, while the program runs, by a name that
 * stays, sluice:post for one. Each is one instruction that does nothing, and a note in the
 * file of the library that says where it is and where its arguments are. These are what is
 * at hand there: nothing is computed for a probe. Without <sys/sdt.h> there are none, and
 * nothing is left of them.
 *
 * The table is all there are; sluice_tracing(7) tells what they mean, and
 * tests/check-probes.sh compares both with the notes. Whoever lists them may include this
 * header alone.
 */
#ifndef SLU_PROBE_H
#define SLU_PROBE_H

/* Each with its arguments, in order. */
#define SLU_PROBES(PROBE)                                     \
    PROBE(post, "channel, id")                                \
    PROBE(completion, "channel, id, opcode, bytes, status")   \
    PROBE(peer_state, "channel, peer, state, status, vendor") \
    PROBE(reset, "channel, peer, generation, error")          \
    PROBE(drain_begin, "channel, peer, sends, receives")      \
    PROBE(drain_end, "channel, peer, sends, receives")        \
    PROBE(sleep_begin, "channel, until")                      \
    PROBE(sleep_end, "channel")                               \
    PROBE(refused, "reason")                                  \
    PROBE(failure, "error, text")

#ifdef HAVE_PROBES
/* Told that it may take memory, clang copies to memory what is in a register. */
#ifdef __clang__
#define STAP_SDT_ARG_CONSTRAINT nr
#endif
#include <sys/sdt.h>

#define SLU_PROBE1(name, a) STAP_PROBE1(sluice, name, a)
#define SLU_PROBE2(name, a, b) STAP_PROBE2(sluice, name, a, b)
#define SLU_PROBE4(name, a, b, c, d) STAP_PROBE4(sluice, name, a, b, c, d)
#define SLU_PROBE5(name, a, b, c, d, e) STAP_PROBE5(sluice, name, a, b, c, d, e)
#else
#define SLU_PROBE1(name, a) ((void)(a))
#define SLU_PROBE2(name, a, b) ((void)(a), (void)(b))
#define SLU_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#define SLU_PROBE5(name, a, b, c, d, e) ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

#endif
