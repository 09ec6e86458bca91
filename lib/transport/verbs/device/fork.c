/* SPDX-License-Identifier: MIT */
/*
 * Fork support of libibverbs, which applies to the whole process. Guarantee: it is not turned on if
 * the kernel makes it unnecessary, because it costs a system call and a split mapping for every
 * registration.
 */
#include "config.h"

#include <string.h>

#include "transport/verbs/device/fork.h"
#include "transport/verbs/verbs.h"

static int turn_on(void)
{
    int err;

    if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
        return 0; /* on by the kernel, by another library, or by an earlier call */
    err = ibv_fork_init();
    if (!err)
        return 0;
    err = slu_verbs_errno(err);
    if (err == EINVAL)
        return slu_fail(EBUSY, "SLUICE_CONTEXT_FORK comes too late: this process has used "
                               "libibverbs without fork support. The first context must ask for "
                               "it, or RDMAV_FORK_SAFE=1 be in the environment");
    return slu_fail(err, "SLUICE_CONTEXT_FORK: libibverbs cannot make fork(2) safe: %s",
                    strerror(err));
}

/* ibv_fork_init() must not run in two threads at a time. */
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = true};

void slu_verbs_lock(void)
{
    slu_fork_lock(&lock);
}

void slu_verbs_unlock(void)
{
    pthread_mutex_unlock(&lock.lock);
}

int slu_verbs_fork_init(void)
{
    int err;

    slu_verbs_lock();
    err = turn_on();
    slu_verbs_unlock();
    return err;
}
