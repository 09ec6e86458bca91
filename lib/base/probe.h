/* SPDX-License-Identifier: MIT */
/*
 * Probes: places where bpftrace, perf and gdb can stop a running program, by stable names such as
 * sluice:post. Each is one no-op instruction, and a note in the library's file with its address and
 * where its arguments are. The arguments are values that are at hand there; nothing is computed for
 * a probe. Without <sys/sdt.h> there are no probes, and they cost nothing.
 *
 * The table has all of them. sluice_tracing(7) explains them, and tests/check-probes.sh compares
 * both with the notes. This header is self-contained, so that tools can list the probes without the
 * rest of the library.
 */
#ifndef SLU_PROBE_H
#define SLU_PROBE_H

/* Names of the probes, with their arguments in order. */
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
/* If the constraint allows memory, clang first copies to memory what is in a register. */
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
