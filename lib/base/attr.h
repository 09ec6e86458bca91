/* SPDX-License-Identifier: MIT */
/* Structs that begin with their size: attributes and information. */
#ifndef SLU_ATTR_H
#define SLU_ATTR_H

#include <stdint.h>

/*
 * The largest sizes that are accepted, for most structs and for those that are larger already. A
 * larger size comes from uninitialised memory.
 */
#define SLU_ATTR_MOST 4096
#define SLU_LARGE_MOST 65536

/*
 * Copies an attribute struct, whose first member is its size. A shorter struct, of an older
 * program, is padded with zeros. A longer one must have zeros beyond what this library knows, or
 * the call fails with -E2BIG. NULL gives all zeros. first_size is the size in the struct's first
 * release: a smaller one, such as the size of a pointer, is a mistake whose fields would be
 * ignored.
 */
int slu_attr_copy(void *to, uint32_t to_size, uint32_t first_size, const void *from,
                  const char *name);

/*
 * Does the same for a struct that the library fills. slu_info_check() comes first, and returns 0;
 * -EINVAL (NULL, or a size below the first one) or -E2BIG, with a text. slu_info_copy() writes the
 * fields that fit, and zeros for fields that this library does not know. The size stays as the
 * program set it.
 */
int slu_info_check(const void *to, uint32_t known, uint32_t first_size, const char *name);
void slu_info_copy(void *to, const void *from, uint32_t known);

#endif
