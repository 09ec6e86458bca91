/* SPDX-License-Identifier: MIT */
/* Checks whether what a program passes is an object, and explains if it is not. */
#include "config.h"

#include "base/object.h"

#include <string.h>

#include "base/error.h"
#include "base/fork.h"
#include "base/misuse.h"

const char *slu_none_hint(const void *object)
{
    return object != NULL ? slu_fork_hint() : slu_earlier_failure();
}

bool slu_may_end(const void *object, uint32_t magic, const char *what)
{
    if (object == NULL)
        return false;
    if (*(const uint32_t *)object == magic)
        return true;
    if (*(const uint32_t *)object == SLU_MAGIC_DEAD)
        slu_misuse(EINVAL, "this %s has ended before", what);
    else
        slu_misuse(EINVAL, "not %s %s, or one that has ended before%s",
                   strchr("aeiou", what[0]) != NULL ? "an" : "a", what, slu_none_hint(object));
    return false;
}

void slu_refuse_owned(const char *what)
{
    slu_misuse(EINVAL, "the %s belongs to a node: it goes with sluice_node_close()", what);
}
