/* SPDX-License-Identifier: MIT */
/* Atomic operations of a module that was compiled to call a function for each. */
#ifndef SIM_ATOMIC_H
#define SIM_ATOMIC_H

/* Returns the function that the compiler calls by that name, or NULL. */
void *sim_resolve_atomic(const char *name);

#endif
