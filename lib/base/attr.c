/* SPDX-License-Identifier: MIT */
/*
 * Structs of attributes and of information begin with their size, so that programs and libraries of
 * different versions work together. In attributes, fields that an older program does not know are
 * zero, and fields that an older library does not know must be zero. Of information, an older
 * program gets the fields it knows, and fields that an older library does not know become zero.
 */
#include "config.h"

#include "base/attr.h"

#include <string.h>

#include "base/error.h"
#include "base/misuse.h"

static uint32_t read_size(const void *from)
{
    uint32_t size;

    memcpy(&size, from, sizeof size);
    return size;
}

static int check_size(uint32_t size, uint32_t known, uint32_t first_size, const char *name)
{
    uint32_t most = known < SLU_ATTR_MOST ? SLU_ATTR_MOST : SLU_LARGE_MOST;

    if (size < first_size)
        return slu_misuse(EINVAL, "%s.size %u is too small: set it to sizeof(struct %s), %u", name,
                          size, name, known);
    if (size > most)
        return slu_misuse(E2BIG, "%s.size is %u, above %u: is it initialised?", name, size, most);
    return 0;
}

int slu_attr_copy(void *to, uint32_t to_size, uint32_t first_size, const void *from,
                  const char *name)
{
    const unsigned char *bytes = from;
    uint32_t size;
    int error;

    memset(to, 0, to_size);
    if (from == NULL)
        return 0;
    size = read_size(from);
    error = check_size(size, to_size, first_size, name);
    if (error < 0)
        return error;
    for (uint32_t i = to_size; i < size; i++)
        if (bytes[i] != 0)
            return slu_fail(E2BIG,
                            "%s has a non-zero byte at offset %u, in a field this library "
                            "does not know (it knows %u bytes)",
                            name, i, to_size);
    memcpy(to, from, size < to_size ? size : to_size);
    return 0;
}

int slu_info_check(const void *to, uint32_t known, uint32_t first_size, const char *name)
{
    if (to == NULL)
        return slu_misuse(EINVAL, "struct %s must not be NULL", name);
    return check_size(read_size(to), known, first_size, name);
}

void slu_info_copy(void *to, const void *from, uint32_t known)
{
    uint32_t size = read_size(to);
    uint32_t copied = size < known ? size : known;

    memcpy((char *)to + sizeof size, (const char *)from + sizeof size, copied - sizeof size);
    memset((char *)to + copied, 0, size - copied);
}
