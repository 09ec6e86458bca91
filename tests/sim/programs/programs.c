/* SPDX-License-Identifier: MIT */
#include "programs.h"

uint64_t below(uint64_t limit)
{
    return sim_program_random() % limit;
}

int rank_main(void)
{
    return run_scatter();
}
