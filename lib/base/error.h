/* SPDX-License-Identifier: MIT */
/*
 * The text of a thread's last failure, and the class of each status. sluice_errors(7) lists the
 * errors of calls.
 */
#ifndef SLU_ERROR_H
#define SLU_ERROR_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <sluice/error.h>

#include "base/macros.h"

/*
 * strerrordesc_np(3) of glibc 2.32 and later, or a text that is as constant: of the C library for
 * the errors that it knows, or else of the thread, until its next call.
 */
#ifndef HAVE_STRERRORDESC_NP
#define strerrordesc_np slu_error_text
const char *slu_error_text(int error);
#endif

/* Sets the thread's text and returns -err. err is positive. */
int slu_fail(int err, const char *format, ...) SLU_PRINTF(2, 3);
/*
 * For constructors, after the failing call has set the text: sets errno from error, and returns
 * NULL.
 */
void *slu_none(int error);
/* Both together: fails, sets errno, and returns NULL. */
#define slu_fail_null(...) slu_none(slu_fail(__VA_ARGS__))
/* Called by a constructor that succeeded. Earlier failures then no longer explain a later NULL. */
void slu_made(void);
/* Restores errno at the end of the block, for calls that promise to keep it. */
#define SLU_KEEP_ERRNO \
    __attribute__((cleanup(slu_errno_restore), unused)) const int slu_kept_errno = errno
static inline void slu_errno_restore(const int *kept)
{
    errno = *kept;
}
/* Sets the thread's text and does nothing else. */
void slu_set_text(const char *format, va_list arguments);
/*
 * Returns the end of a text about NULL in place of an object: if the thread's last failure was of a
 * constructor, "; earlier: " and the text of the first one; or "". The caller must set the text
 * next. The first text is then kept for further NULLs.
 */
const char *slu_earlier_failure(void);
/* Returns that first text, or NULL if there is none; for a NULL that may be intended. */
const char *slu_first_failure(void);
/*
 * Maps an errno value (negative) of a driver or the system to one that sluice_channel_prepare(3)
 * documents; -EIO if no other fits. The text still names the original.
 */
int slu_listed(int error);
/* Tells whether a call failed for want of descriptors or memory, so that it may succeed later. */
static inline bool slu_is_shortage(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}
/* Tells whether the system forbids this process to make a call, as in a sandbox. */
static inline bool slu_is_refusal(int err)
{
    return err == EPERM || err == EACCES || err == ENOSYS;
}
#define SLU_TEXT_BYTES 320
/* The thread's text, saved by calls that clean up after a failure. */
struct slu_text {
    char bytes[SLU_TEXT_BYTES];
    /*
     * the text of the first constructor that returned NULL, if bytes is about a consequence; or ""
     */
    char first[SLU_TEXT_BYTES];
};
void slu_text_save(struct slu_text *text);
void slu_text_restore(const struct slu_text *text);
/*
 * Adds to the text of an error on a file the attribute or variable that names it, if source is not
 * NULL. Returns error.
 */
int slu_name_source(int error, const char *source);
/* The number of values of enum sluice_error_class. */
#define SLU_CLASSES 9
/* Return the class of a status of an operation, and the errno value (negative) of a class. */
enum sluice_error_class slu_class_of(uint32_t status, uint32_t opcode);
int slu_class_error(enum sluice_error_class error_class);
/* Returns what to try, for texts. Static; never NULL. */
const char *slu_class_hint(enum sluice_error_class error_class);

#endif
