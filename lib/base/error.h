/* SPDX-License-Identifier: MIT */
/*
 * Errors in words: the text of a thread's last failure, and the class of each status.
 * sluice_errors(7) lists what calls return.
 */
#ifndef SLU_ERROR_H
#define SLU_ERROR_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <sluice/error.h>

#include "base/macros.h"

/* Sets the thread's text and returns -err. err is positive. */
int slu_fail(int err, const char *format, ...) SLU_PRINTF(2, 3);
/* The same for constructors: sets errno as well and returns NULL. */
void *slu_fail_null(int err, const char *format, ...) SLU_PRINTF(2, 3);
/* For constructors, after what failed has set the text: errno by its negative value, and NULL. */
void *slu_none(int error);
/* A constructor has made its object: no failure before it explains a NULL after it. */
void slu_made(void);
/* At the head of a call that promises so: whatever happens in its block, errno stays as it was. */
#define SLU_KEEP_ERRNO \
    __attribute__((cleanup(slu_errno_restore), unused)) const int slu_kept_errno = errno
static inline void slu_errno_restore(const int *kept)
{
    errno = *kept;
}
/* For those that do more with it: the text, and nothing else. */
void slu_set_text(const char *format, va_list arguments);
/*
 * For the end of a text that tells of NULL in place of an object, and is set next: if
 * the thread's last failure was of a constructor, "; earlier: " and the text of the
 * first one, which is then kept for further NULLs; or "".
 */
const char *slu_earlier_failure(void);
/* For a NULL that may be meant: the text of that first one, or NULL if there is none. */
const char *slu_first_failure(void);
/*
 * What a call returns for an errno value (negative) of a driver or of the system
 * whose own list is closed: a value of sluice_channel_prepare(3), EIO if no other
 * fits. The text has the words of the original.
 */
int slu_listed(int error);
/* Whether the system does not let this process make a call, as in a sandbox. */
static inline bool slu_is_refusal(int err)
{
    return err == EPERM || err == EACCES || err == ENOSYS;
}
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

#endif
