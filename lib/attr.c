/* SPDX-License-Identifier: MIT */
/*
 * Attribute structs begin with their size, so that programs and libraries of
 * different versions agree: what an older program does not know is zero, what
 * an older library does not know must be zero.
 */
#include "config.h"

#include <string.h>

#include "internal.h"

int slu_attr_copy(void *to, uint32_t to_size, uint32_t first_size, const void *from,
                  const char *name)
{
    const unsigned char *bytes = from;
    uint32_t size;

    memset(to, 0, to_size);
    if (from == NULL)
        return 0;
    memcpy(&size, from, sizeof size);
    if (size < first_size)
        return slu_misuse(EINVAL, "%s.size %u is too small: set it to sizeof(struct %s), %u", name,
                          size, name, to_size);
    if (size > 4096)
        return slu_misuse(E2BIG, "%s.size %u: no such struct is so large; is it initialised?", name,
                          size);
    for (uint32_t i = to_size; i < size; i++)
        if (bytes[i] != 0)
            return slu_fail(E2BIG,
                            "%s has a non-zero byte at offset %u, in a field this library "
                            "does not know (it knows %u bytes)",
                            name, i, to_size);
    memcpy(to, from, size < to_size ? size : to_size);
    return 0;
}
