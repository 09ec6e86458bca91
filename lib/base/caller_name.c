/* SPDX-License-Identifier: MIT */
/*
 * Finds the name of the public function that the program called, from the frames on the thread's
 * stack, so that calls without an error pay nothing. The name is right, or there is none. Inner
 * functions leave their frames on the stack because the library is built without tail calls: see
 * configure.ac.
 */
#include "config.h"

#include "base/caller_name.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/descriptor.h"

/* Not every C library has it: without it no name is found. */
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
#define backtrace(frames, most) 0
#endif

#define MOST_FRAMES 64 /* of the library, and one of the program */

/* How many functions that the program provided, such as callbacks, the thread is in. */
static _Thread_local int program_depth;

/* Its address is in the library. */
static const char here;

/* A return address may lie behind its function, if the call was the last instruction. */
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
 * Public functions call one another, so the first one counts: the one whose caller is outside of
 * the library. A function of the program that calls the library may have left no frame, if it does
 * nothing after the call; so within such functions the name is certain only if there is one public
 * function on the stack. Only a shared library has names of its functions, and only of public ones;
 * if a program contains the archive, the last frame that seems to be the library's is main() or the
 * like.
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
    /* Skip frames of sanitizers, which intercept calls of the C library. */
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
