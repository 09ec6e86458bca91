/* SPDX-License-Identifier: MIT */
/*
 * SLUICE_S() and the others, of integers and of fractions, in C99 and in C++11:
 * check-headers.sh compiles this as both, with all warnings, and runs it.
 */
#include <stdio.h>

#include <sluice/time.h>

/* Integers make integer constant expressions. */
typedef char integers_are_constant[SLUICE_S(2) == INT64_C(2000000000) ? 1 : -1];
typedef char large_ones_are_exact[SLUICE_S(9000000000) == INT64_C(9000000000000000000) ? 1 : -1];
typedef char odd_ones_are_exact[SLUICE_MS(9007199254741) == INT64_C(9007199254741000000) ? 1 : -1];

enum { MILLISECOND = SLUICE_MS(1) };

/* Fractions are valid initializers of static objects. */
static const int64_t half = SLUICE_S(0.5);

#ifdef __cplusplus
static_assert(SLUICE_S(0.5) == 500000000, "fractions are constant");
static_assert(SLUICE_US(2.5f) == 2500, "so are those of another type");
#endif

static int failures;

static void check(const char *what, int64_t got, int64_t wanted)
{
    if (got == wanted)
        return;
    printf("%s is %lld, not %lld\n", what, (long long)got, (long long)wanted);
    failures++;
}

#define CHECK(duration, wanted) check(#duration, duration, INT64_C(wanted))

/* Checks a type in which a program may count time. */
#define CHECK_TYPE(type)                \
    do {                                \
        const type n = (type)3;         \
        CHECK(SLUICE_NS(n), 3);         \
        CHECK(SLUICE_US(n), 3000);      \
        CHECK(SLUICE_MS(n), 3000000);   \
        CHECK(SLUICE_S(n), 3000000000); \
    } while (0)

static void check_fractions(void)
{
    const double quarter = 0.25;
    const long double eighth = 0.125L;
    CHECK(half, 500000000);
    CHECK(SLUICE_S(0.5), 500000000);
    CHECK(SLUICE_MS(1.5), 1500000);
    CHECK(SLUICE_US(1.5), 1500);
    CHECK(SLUICE_NS(1.5), 1);
    CHECK(SLUICE_S(1e-9), 1);
    CHECK(SLUICE_S(2.5f), 2500000000);
    CHECK(SLUICE_S(eighth), 125000000);
    CHECK(SLUICE_S(quarter * 2), 500000000);
    CHECK(SLUICE_S(1.25 + quarter), 1500000000);
    CHECK(-SLUICE_S(0.5), -500000000);
    CHECK(SLUICE_S(-0.5), -500000000);
}

static void check_integers(void)
{
    const int64_t most = INT64_MAX / 1000000000;
    CHECK_TYPE(signed char);
    CHECK_TYPE(short);
    CHECK_TYPE(unsigned);
    CHECK_TYPE(long);
    CHECK_TYPE(long long);
    CHECK_TYPE(unsigned long);
    CHECK_TYPE(uint64_t);
    CHECK_TYPE(float);
    CHECK_TYPE(double);
    CHECK_TYPE(long double);
    CHECK(SLUICE_S(most), 9223372036000000000);
    CHECK(SLUICE_S(1 + 2) * 2, 6000000000);
    CHECK(SLUICE_S(3) / SLUICE_MS(1), 3000);
    CHECK(SLUICE_S(-1), -1000000000);
    CHECK(MILLISECOND, 1000000);
}

int main(void)
{
    check_fractions();
    check_integers();
    return failures > 0;
}
