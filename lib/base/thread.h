/* SPDX-License-Identifier: MIT */
/* Threads of the library. All signals are blocked in them: those are for threads of the program. */
#ifndef SLU_BASE_THREAD_H
#define SLU_BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread, with a name that ps(1) and debuggers show; NULL: none, so that the thread may
 * detach itself at once. Returns 0, or a positive errno value: EAGAIN.
 */
int slu_thread_start(pthread_t *thread, const char *name, void *(*run)(void *argument),
                     void *argument);

#endif
