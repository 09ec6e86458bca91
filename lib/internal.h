/* SPDX-License-Identifier: MIT */
/*
 * What all parts of the library share: failing with a text, the log, the
 * clock, object magic and reference counts.
 */
#ifndef SLU_INTERNAL_H
#define SLU_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/error.h>
#include <sluice/log.h>
#include <sluice/time.h>

#include "transport/transport.h"

#define SLU_PRINTF(a, b) __attribute__((format(printf, a, b)))
#define slu_container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define SLU_LIKELY(x) __builtin_expect(!!(x), 1)
#define SLU_UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * called.c: the public function that the program called, or NULL if it cannot be
 * told for sure. Static. Slow; it takes memory, and opens files for a moment.
 */
const char *slu_called(void);
/* Around each call of a function that the program gave us. */
void slu_program_enter(void);
void slu_program_leave(void);

/* For texts: the end of a noun of which there are so many. */
#define SLU_S(count) ((count) == 1 ? "" : "s")

/* error.c: sets the thread's text and returns -err. err is positive. */
int slu_fail(int err, const char *format, ...) SLU_PRINTF(2, 3);
/* The same for constructors: sets errno as well and returns NULL. */
void *slu_fail_null(int err, const char *format, ...) SLU_PRINTF(2, 3);
/* For constructors, after what failed has set the text: errno by its negative value, and NULL. */
void *slu_none(int error);
/* A constructor has made its object: no failure before it explains a NULL after it. */
void slu_made(void);
/*
 * For the end of a text of what is no object, and that text is set next: why it may
 * be none, or "". Of NULL, if the thread's last failure was of a constructor, that is
 * "; earlier: " and the text of the first one, which is then kept for further NULLs;
 * of something else, that it may be of the process that forked this one.
 */
const char *slu_none_hint(const void *object);
/* For a NULL that may be meant: the text of that first one, or NULL if there is none. */
const char *slu_first_failure(void);
/*
 * The same two for mistakes of the program, which no device, peer or load can
 * cause or cure; with SLUICE_MISUSE=abort they do not return, but name the call.
 * sluice_errors(7) lists them.
 */
int slu_misuse(int err, const char *format, ...) SLU_PRINTF(2, 3);
void *slu_misuse_null(int err, const char *format, ...) SLU_PRINTF(2, 3);
/*
 * What a call returns for an errno value (negative) of a driver or of the system
 * whose own list is closed: a value of sluice_channel_prepare(3), EIO if no other
 * fits. The text has the words of the original.
 */
int slu_listed(int error);
/*
 * For calls that end an object and return nothing: whether there is one, by its
 * first word. NULL is none; something else is a misuse.
 */
bool slu_may_end(const void *object, uint32_t magic, const char *what);
/* It belongs to a node: to end it is a misuse, too. */
void slu_refuse_owned(const char *what);
#define SLU_TEXT_BYTES 320
/* The thread's text, for calls that must clean up after a failure without losing its words. */
struct slu_text {
    char bytes[SLU_TEXT_BYTES];
    /* Of the first constructor that returned NULL, if bytes is of what came of it; or "". */
    char first[SLU_TEXT_BYTES];
};
void slu_text_save(struct slu_text *text);
void slu_text_restore(const struct slu_text *text);
/* Of enum sluice_error_class. */
#define SLU_CLASSES 9
/* Class of a status of an operation, and errno value (negative) of a class. */
enum sluice_error_class slu_class_of(uint32_t status, uint32_t opcode);
int slu_class_error(enum sluice_error_class error_class);
/* What to try, in words. Static; never NULL. */
const char *slu_class_hint(enum sluice_error_class error_class);

/* log.c */
void slu_log(enum sluice_log_level level, const char *format, ...) SLU_PRINTF(2, 3);
/* A line to standard error, whose end is added. */
void slu_say(const char *format, ...) SLU_PRINTF(1, 2);
/* Around fork(2). */
void slu_log_before_fork(void);
void slu_log_in_parent(void);
void slu_log_in_child(void);

/* time.c: CLOCK_MONOTONIC in nanoseconds; a relative time as an absolute one, saturating. */
int64_t slu_now(void);
int64_t slu_after(int64_t relative);

/* random.c: from getrandom(2); 0 or a negative errno. */
int slu_random(void *bytes, size_t count);

/*
 * attr.c: copies an attribute struct whose first member is its size. A shorter
 * one (of an older program) is padded with zeros; a longer one must have zeros
 * where we know nothing, else -E2BIG. NULL gives all zeros. first_size is what
 * the struct had in its first release: a program that gives less, the size of
 * a pointer for one, is mistaken, and would have its fields ignored.
 */
int slu_attr_copy(void *to, uint32_t to_size, uint32_t first_size, const void *from,
                  const char *name);

/*
 * The same for a struct that is written for the program. The check comes first:
 * 0, or -EINVAL (NULL, or less than its first size) or -E2BIG with a text. The
 * copy then writes what there is room for, zeros where we know nothing, and
 * nothing behind the size, which stays the program's.
 */
int slu_info_check(const void *to, uint32_t known, uint32_t first_size, const char *name);
void slu_info_copy(void *to, const void *from, uint32_t known);

enum slu_kind {
    SLU_CONTEXT,
    SLU_PD,
    SLU_MR,
    SLU_PREPARED_CHANNEL,
    SLU_CHANNEL,
    SLU_PREPARED_MULTICHANNEL,
    SLU_MULTICHANNEL,
    SLU_PREPARED_NODE,
    SLU_NODE,
    SLU_EXCHANGE,
    SLU_KINDS
};

/*
 * What is of this process and not of its parent: a child of fork(2) finds it
 * wiped, without being asked. The page is its own; if those of the machine are
 * larger, fork.c does it alone.
 */
#if defined(__x86_64__)
#define SLU_LIVING_BYTES 4096
#else
#define SLU_LIVING_BYTES 65536
#endif
#define SLU_PLACE_LEVELS 15
struct slu_living {
    uint32_t magic[SLU_KINDS];
    uint32_t first_free_place; /* these three are name.c's */
    uint32_t place_count;
    _Atomic(void *) places[SLU_PLACE_LEVELS];
    struct sluice_pd *pds; /* pd.c's: all of them */
};
union slu_living_page {
    struct slu_living living;
    uint8_t bytes[SLU_LIVING_BYTES];
} __attribute__((aligned(SLU_LIVING_BYTES)));
extern union slu_living_page slu_living_page;
#define slu_living slu_living_page.living

/* fork.c: before anything is made; 0, or -ENOMEM. */
int slu_fork_prepare(void);
/*
 * A lock that is free in a child of fork(2), whoever has it in the parent.
 * waits: fork(2) waits for it, and the child finds what it is about whole; it
 * is not held for long then, nor by who forks. Join it before it is taken.
 */
struct slu_fork_lock {
    pthread_mutex_t lock;
    bool waits;
    bool joined;
    struct slu_fork_lock *next;
};
void slu_fork_join(struct slu_fork_lock *joining);
void slu_fork_lock(struct slu_fork_lock *taken); /* both */
/* How many parents of this process had the library before it. */
uint32_t slu_fork_generation(void);
/* Part of slu_none_hint(). */
const char *slu_fork_hint(void);

/*
 * First word of every object a program holds. It catches what the compiler
 * cannot follow: pointers kept in arrays, a wrong cast, an object used after
 * its end (best effort); and objects of the process that forked this one.
 */
#define SLU_MAGIC_CONTEXT (slu_living.magic[SLU_CONTEXT])
#define SLU_MAGIC_PD (slu_living.magic[SLU_PD])
#define SLU_MAGIC_MR (slu_living.magic[SLU_MR])
#define SLU_MAGIC_PREPARED_CHANNEL (slu_living.magic[SLU_PREPARED_CHANNEL])
#define SLU_MAGIC_CHANNEL (slu_living.magic[SLU_CHANNEL])
#define SLU_MAGIC_PREPARED_MULTICHANNEL (slu_living.magic[SLU_PREPARED_MULTICHANNEL])
#define SLU_MAGIC_MULTICHANNEL (slu_living.magic[SLU_MULTICHANNEL])
#define SLU_MAGIC_PREPARED_NODE (slu_living.magic[SLU_PREPARED_NODE])
#define SLU_MAGIC_NODE (slu_living.magic[SLU_NODE])
#define SLU_MAGIC_EXCHANGE (slu_living.magic[SLU_EXCHANGE])
#define SLU_MAGIC_DEAD UINT32_C(0xdeadbeef)

struct slu_engine;

struct sluice_context {
    uint32_t magic;
    bool owned; /* by a node, which alone ends it */
    atomic_uint references;
    struct slu_tcontext *transport;
};

struct sluice_pd {
    uint32_t magic;
    bool owned; /* as that of a context */
    atomic_uint references;
    struct sluice_context *context;
    struct slu_tpd *transport;
    pthread_mutex_t lock; /* of the list of engines */
    struct slu_engine *engines;
    struct sluice_pd *next; /* in the list of all */
};

struct sluice_mr {
    uint32_t magic;
    struct sluice_pd *pd;
    struct slu_tmr *transport;
};

/* The objects of a program around those of a transport; on failure these are freed. */
struct sluice_context *slu_context_create(struct slu_tcontext *transport);
struct sluice_pd *slu_pd_create(struct sluice_context *context, struct slu_tpd *transport);
/* 0, or -EINVAL or -E2BIG: the attributes with defaults for what an older program does not give. */
int slu_context_attr_apply(const struct sluice_context_attr *given,
                           struct sluice_context_attr *attr);
void slu_context_hold(struct sluice_context *context);
void slu_context_release(struct sluice_context *context);
void slu_pd_hold(struct sluice_pd *pd);
/* Whether posted work names memory of the domain by that key, through whichever object. */
bool slu_pd_uses_key(const struct sluice_pd *pd, uint32_t lkey);
void slu_pd_release(struct sluice_pd *pd);

#endif
