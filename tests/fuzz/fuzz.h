/* SPDX-License-Identifier: MIT */
/*
 * Targets of the fuzzer: code that reads bytes of another process. Each is a file fuzz_NAME.c with
 * LLVMFuzzerTestOneInput(), which checks by hold() what must be true for all bytes. It is built
 * twice: as tests/test_fuzz_NAME, which replays the inputs of corpus/NAME/ and some thousands of
 * variations (replay.c); and with configure --enable-fuzzers by libFuzzer, for scripts/soak --fuzz.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer ones are neither replayed nor made. */
#define FUZZ_MOST 4096

/* The NAME of the target. */
extern const char fuzz_name[];

/* Always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Inputs that the library accepted. A corpus of which none is accepted, such as one of an older
 * version, proves nothing any more: the replay requires at least one.
 */
extern unsigned fuzz_taken;

/* Requires a condition for every input; otherwise prints the text and ends the program. */
#define hold(condition, ...)                                        \
    do {                                                            \
        if (!(condition)) {                                         \
            fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__); \
        }                                                           \
    } while (0)
void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* An input that is consumed from its front; behind its end there are zeros. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};
uint64_t fuzz_number(struct fuzz_input *input, int bytes);
static inline uint8_t fuzz_byte(struct fuzz_input *input)
{
    return (uint8_t)fuzz_number(input, 1);
}
/* Takes up to *count bytes, and sets *count to their number. */
const uint8_t *fuzz_bytes(struct fuzz_input *input, size_t *count);

/* Returns the lowest free descriptor: the same before and after, unless one is left open. */
int fuzz_free_descriptor(void);

/* Requires that a failure of the library has set a text. */
void fuzz_explained(void);

#endif
