/* SPDX-License-Identifier: MIT */
/* fork(2) and libibverbs. */
#ifndef SLU_VERBS_FORK_H
#define SLU_VERBS_FORK_H

/* Makes fork(2) safe for memory that is registered later. */
int slu_verbs_fork_init(void);
/* While this lock is held, no other thread forks, or makes libibverbs open or list anything. */
void slu_verbs_lock(void);
void slu_verbs_unlock(void);

#endif
