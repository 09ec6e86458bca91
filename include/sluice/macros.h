/* SPDX-License-Identifier: MIT */
/*
 * Compiler attributes of the public declarations. Programs need none of them;
 * they let the compiler find a forgotten, doubled or mixed-up call. Also a
 * constant for fields of several structs.
 */
#ifndef SLUICE_MACROS_H
#define SLUICE_MACROS_H

#include <stdint.h>

#if defined(__GNUC__)
#define SLUICE_EXPORT __attribute__((visibility("default")))
#define SLUICE_NODISCARD __attribute__((warn_unused_result))
#define SLUICE_MAYBE_UNUSED __attribute__((unused))
#else
#define SLUICE_EXPORT
#define SLUICE_NODISCARD
#define SLUICE_MAYBE_UNUSED
#endif

/*
 * SLUICE_CONSUMED_BY(f): the returned object must be given to f exactly once.
 * GCC 11 and later follow the object: forgetting it, using it afterwards, or
 * passing it to free() is a warning. Clang 14 rejects the attribute.
 * SLUICE_CONSUMED_AS(f, n): likewise, as argument n of f.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define SLUICE_CONSUMED_AS(f, n) __attribute__((__malloc__(f, n)))
#else
#define SLUICE_CONSUMED_AS(f, n)
#endif
#define SLUICE_CONSUMED_BY(f) SLUICE_CONSUMED_AS(f, 1)

/*
 * Marks of docs/stability.md. A function with SLUICE_EXPERIMENTAL may change or go in any release;
 * with SLUICE_WARN_EXPERIMENTAL defined, calls of it are warned of. One with SLUICE_DEPRECATED
 * works on, and each call is warned of; the text says what replaces it and since when.
 */
#if defined(SLUICE_WARN_EXPERIMENTAL) && defined(__GNUC__)
#define SLUICE_EXPERIMENTAL __attribute__((__warning__("experimental: it may change or go")))
#else
#define SLUICE_EXPERIMENTAL
#endif
#if defined(__GNUC__)
#define SLUICE_DEPRECATED(text) __attribute__((__deprecated__(text)))
#else
#define SLUICE_DEPRECATED(text)
#endif

/* SLUICE_SIZED_BY(n): the returned memory has exactly as many bytes as argument n says. */
#if defined(__GNUC__)
#define SLUICE_SIZED_BY(n) __attribute__((__alloc_size__(n)))
#else
#define SLUICE_SIZED_BY(n)
#endif

/*
 * Around the second declaration of a function, made because two functions each
 * consume what the other returns: they silence -Wredundant-decls there.
 */
#if defined(__GNUC__)
#define SLUICE_REDECLARE_BEGIN \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wredundant-decls\"")
#define SLUICE_REDECLARE_END _Pragma("GCC diagnostic pop")
#else
#define SLUICE_REDECLARE_BEGIN
#define SLUICE_REDECLARE_END
#endif

/*
 * Stands for the number 0 in a field where 0 means the default, if the field's
 * comment allows it.
 */
#define SLUICE_ZERO UINT32_MAX

#endif
