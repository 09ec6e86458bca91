/* SPDX-License-Identifier: MIT */
/*
 * Fork support of libibverbs, which is of the whole process. Guarantee: it is
 * never turned on where the kernel makes it needless, because it then costs a
 * system call and a split mapping for every registration, for nothing.
 */
#include "config.h"

#include <string.h>

#include "transport/verbs/verbs.h"

static int turn_on(void)
{
    int err;

    if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
        return 0; /* by the kernel, by another library, or by an earlier call */
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

/* libibverbs does not expect two at a time. */
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
