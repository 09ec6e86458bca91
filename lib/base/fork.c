/* SPDX-License-Identifier: MIT */
/*
 * The library in a child of fork(2). The child cannot affect its parent's objects, and can make its
 * own as if it were the first to use the library.
 *
 * The magic words of objects lie in a page that the kernel wipes in a child, which then sets other
 * words, so no object of the parent is valid there. Three handlers do the rest: they hold the locks
 * during fork(2), so that the child finds consistent data, and the child closes its copies of the
 * library's descriptors.
 */
#include "config.h"

#include "base/fork.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/log.h"
#include "base/object.h"
#include "base/random.h"

union slu_living_page slu_living_page;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of locks */
static struct slu_fork_lock *locks;
static uint32_t generation; /* number of forks between the first process and this one */
static atomic_bool used;    /* by this process */
static bool inherited;      /* an ancestor of this process used the library */
static int unprepared;      /* errno value if the handlers could not be set */

static void begin_life(void)
{
    /* Each generation has its own words: letters that change, and the kind. */
    for (uint32_t i = 0; i < SLU_KINDS; i++)
        slu_living.magic[i] = UINT32_C(0x534c4300) + (generation << 16) + i + 1;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    for (struct slu_fork_lock *at = locks; at != NULL; at = at->next)
        if (at->waits)
            pthread_mutex_lock(&at->lock);
    slu_log_before_fork();
    slu_fd_before_fork();
}

static void in_parent(void)
{
    slu_fd_in_parent();
    slu_log_in_parent();
    for (struct slu_fork_lock *at = locks; at != NULL; at = at->next)
        if (at->waits)
            pthread_mutex_unlock(&at->lock);
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    memset(&slu_living_page, 0, sizeof slu_living_page);
    generation++;
    inherited = inherited || atomic_exchange(&used, false);
    begin_life();
    slu_fd_in_child();
    slu_log_in_child();
    for (struct slu_fork_lock *at = locks; at != NULL; at = at->next) {
        /* Locked since before_fork(), or else perhaps by a thread that does not exist here. */
        if (at->waits)
            pthread_mutex_unlock(&at->lock);
        else
            pthread_mutex_init(&at->lock, NULL);
    }
    pthread_mutex_unlock(&lock);
}

void slu_fork_join(struct slu_fork_lock *joining)
{
    pthread_mutex_lock(&lock);
    if (!joining->joined) {
        joining->joined = true;
        joining->next = locks;
        locks = joining;
    }
    pthread_mutex_unlock(&lock);
}

/*
 * Runs before any lock of the library is taken. Before Linux 4.14, without MADV_WIPEONFORK, only
 * the handlers tell a child from its parent.
 */
static __attribute__((constructor)) void begin_process(void)
{
    int saved = errno;

    begin_life();
    madvise(&slu_living_page, sizeof slu_living_page, MADV_WIPEONFORK);
    unprepared = pthread_atfork(before_fork, in_parent, in_child);
    errno = saved;
}

static int make_token(void)
{
    int error = 0;

    pthread_mutex_lock(&lock);
    if (!slu_living.has_token)
        error = slu_random(slu_living.token, sizeof slu_living.token);
    slu_living.has_token = error == 0;
    pthread_mutex_unlock(&lock);
    return error;
}

const void *slu_process_token(void)
{
    return slu_living.token;
}

int slu_fork_prepare(void)
{
    /* A child of clone(2), for which no handler ran. */
    if (slu_living.magic[0] == 0) {
        generation++;
        inherited = true;
        begin_life();
    }
    atomic_store(&used, true);
    if (unprepared != 0)
        return slu_fail(unprepared, "no memory for what is to be done at fork(2)");
    return make_token();
}

void slu_fork_lock(struct slu_fork_lock *taken)
{
    slu_fork_join(taken);
    pthread_mutex_lock(&taken->lock);
}

uint32_t slu_fork_generation(void)
{
    return generation;
}

const char *slu_fork_hint(void)
{
    return inherited || slu_living.magic[0] == 0
               ? "; what was opened before fork(2) is the parent's alone"
               : "";
}
