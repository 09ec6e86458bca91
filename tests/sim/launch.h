/* SPDX-License-Identifier: MIT */
/* Parts of a run that belong to the launch of its ranks: their gathers and their environment. */
#ifndef SIM_LAUNCH_H
#define SIM_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void sim_gather_begin(uint32_t ranks);
void sim_gather_end(void);
/* A rank was killed or has ended: gathers no longer wait for it. It may begin again. */
void sim_gather_leave(uint32_t rank);
void sim_gather_return(uint32_t rank);

/*
 * Returns the environment of a rank as sluice-launch makes it, and the variables of more, which
 * may be NULL. It goes to sim_launch_environment_free().
 */
const char *const *sim_launch_environment(uint32_t rank, uint32_t ranks, const char *const *more);
void sim_launch_environment_free(const char *const *environment);
/* Fills in the text of a file that the launcher has written. Returns false if there is none. */
bool sim_launch_file(const char *path, char *text, size_t room);

#endif
