/* SPDX-License-Identifier: MIT */
/*
 * The local rank of a process, its number among the processes of its host, from environment
 * variables. It must not need an exchange, because devices are opened before there is one.
 */
#include "config.h"

#include <sluice/exchange.h>

#include "base/base.h"
#include "base/environment.h"
#include "device/choice.h"

/* Launchers with PMIx are missing here: PMIx has no variable for it, only a key of its server. */
struct launcher {
    const char *local;  /* the variable */
    const char *beside; /* a generic name counts only if this one is set as well; or NULL */
};

/* Innermost first, as in exchange/launch.c: other launchers pass on the variables of Slurm. */
static const struct launcher launchers[] = {
    {.local = "OMPI_COMM_WORLD_LOCAL_RANK"},
    {.local = "MPI_LOCALRANKID"},
    {.local = "LOCAL_RANK", .beside = "WORLD_SIZE"},
    {.local = "SLURM_LOCALID"},
};
#define LAUNCHERS (sizeof launchers / sizeof launchers[0])

/* Returns 1 if the launcher sets the rank, 0 if not, or -EINVAL. */
static int read_launcher(const struct launcher *launcher, uint32_t *rank)
{
    const char *text = slu_getenv(launcher->local);

    if (text == NULL || (launcher->beside != NULL && slu_getenv(launcher->beside) == NULL))
        return 0;
    if (slu_parse_number(text, 0, SLUICE_MAX_RANKS - 1, rank) == 0)
        return 1;
    if (launcher->beside != NULL)
        return 0; /* a variable of another program */
    return slu_fail(EINVAL, "%s is '%.64s', must be a number of 0 to %u", launcher->local, text,
                    SLUICE_MAX_RANKS - 1);
}

int slu_local_rank(uint32_t *rank, const char **source)
{
    int found = slu_env_number(SLU_ENV_LOCAL_RANK, rank);

    *source = slu_env_name(SLU_ENV_LOCAL_RANK);
    for (size_t i = 0; i < LAUNCHERS && found == 0; i++) {
        *source = launchers[i].local;
        found = read_launcher(&launchers[i], rank);
    }
    if (found != 0)
        return found < 0 ? found : 0;
    *rank = 0;
    *source = NULL;
    return 0;
}
