/* SPDX-License-Identifier: MIT */
/* Structs that begin with their size: attributes and information. */
#ifndef SLU_ATTR_H
#define SLU_ATTR_H

#include <stdint.h>

/*
 * No struct is larger, but for those that are larger already: such a size is what happened
 * to be in the memory.
 */
#define SLU_ATTR_MOST 4096
#define SLU_LARGE_MOST 65536

/*
 * Copies an attribute struct whose first member is its size. A shorter
 * one (of an older program) is padded with zeros; a longer one must have zeros
 * where we know nothing, else -E2BIG. NULL gives all zeros. first_size is what
 * the struct had in its first release: a program that gives less, the size of
 * a pointer for one, is mistaken, and would have its fields ignored.
 */
int slu_attr_copy(void *to, uint32_t to_size, uint32_t first_size, const void *from,
                  const char *name);

/*
 * The same for a struct that is written for the program. The check comes first:
 * 0, or -EINVAL (NULL, or less than its first size) or -E2BIG with a text. The
 * copy then writes what there is room for, zeros where we know nothing, and
 * nothing behind the size, which stays the program's.
 */
int slu_info_check(const void *to, uint32_t known, uint32_t first_size, const char *name);
void slu_info_copy(void *to, const void *from, uint32_t known);

#endif
