/* SPDX-License-Identifier: MIT */
/*
 * The name of the public function that the program called, found from where the
 * thread is, at no cost to calls that have nothing to tell. Guarantee: what is
 * given is that name, or none. Inner functions leave their frames on the stack,
 * for the library is built without tail calls: see configure.ac.
 */
#include "config.h"

#include "base/caller_name.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>
#include <string.h>

#include "base/descriptor.h"

#define MOST_FRAMES 64 /* of the library and one of the program */

/* How many functions that the program gave us the thread is in. */
static _Thread_local int program_depth;

/* It tells where the library is. */
static const char here;

/* A call may be the last instruction of its function: what returns there is behind it. */
static bool find(const void *returns_to, Dl_info *found)
{
    return dladdr((const char *)returns_to - 1, found) != 0;
}

void slu_program_enter(void)
{
    program_depth++;
}

void slu_program_leave(void)
{
    program_depth--;
}

/*
 * Public functions call one another: the one that counts is the first, whose
 * caller is not ours. A function that the program gave us, and that calls us, may
 * have left no frame if it does nothing after it; so within those only a lone
 * public function is sure. Only a shared library has the names of its functions,
 * and of none but those that are public: where a program has the archive in it,
 * the last frame that seems ours is main() or its like.
 */
const char *slu_caller_name(void)
{
    void *frames[MOST_FRAMES];
    const char *name = NULL;
    Dl_info own;
    Dl_info frame;
    int first = 0;
    int count;
    int named = 0;

    slu_fd_guard(); /* the C library loads another one to walk the stack */
    count = backtrace(frames, MOST_FRAMES);
    slu_fd_unguard();
    if (dladdr(&here, &own) == 0)
        return NULL;
    /* Sanitizers put themselves between us and the C library. */
    while (first < count && (!find(frames[first], &frame) || frame.dli_fbase != own.dli_fbase))
        first++;
    for (int i = first; i < count; i++) {
        if (!find(frames[i], &frame) || frame.dli_fbase != own.dli_fbase)
            return program_depth == 0 || named == 1 ? name : NULL;
        name = frame.dli_sname;
        if (name != NULL && strncmp(name, "sluice_", strlen("sluice_")) != 0)
            name = NULL;
        named += name != NULL;
    }
    return NULL;
}
