/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

#include "base/descriptor.h"

int slu_thread_start(pthread_t *thread, const char *name, void *(*run)(void *argument),
                     void *argument)
{
    sigset_t all, before;
    int error;

    /* Blocked before, so that the thread never has one, and threads that it creates neither. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0 && name != NULL)
        slu_fd_name_thread(*thread, name);
    return error;
}
