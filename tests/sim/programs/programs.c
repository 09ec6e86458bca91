/* SPDX-License-Identifier: MIT */
#include "programs.h"

uint64_t below(uint64_t limit)
{
    return sim_program_random() % limit;
}

static void *give_up[5];

void again(const char *what)
{
    static uint32_t refusals;
    uint32_t befell = sim_befell(sim_rank(), sim_rank());
    bool refused = (befell & SIM_REFUSED) != 0 && refusals++ < 8;
    must(refused || (befell & SIM_DEVICE) != 0, "%s: %s", what, sluice_last_error());
    if (!refused) {
        __builtin_longjmp(give_up, 1);
    }
}

int rank_main(void)
{
    static const struct {
        void (*run)(void);
        void (*end)(void);
    } programs[] = {{run_scatter, end_scatter}, {run_traffic, end_traffic}};
    uint64_t *chosen = sim_shared(sizeof *chosen);
    if (*chosen == 0) {
        *chosen = 1 + sim_number("program", below(8) == 0 || sim_number("wrong", 0) ? 0 : 1);
    }
    if (__builtin_setjmp(give_up) == 0) {
        programs[*chosen - 1].run();
    }
    programs[*chosen - 1].end();
    return 0;
}
