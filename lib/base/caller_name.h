/* SPDX-License-Identifier: MIT */
/* Which public function the program called, and where it is in functions of its own. */
#ifndef SLU_CALLER_NAME_H
#define SLU_CALLER_NAME_H

/* Its name, static; NULL if it cannot be told for sure. Slow; it takes memory, and opens files. */
const char *slu_caller_name(void);
/* Around each call of a function that the program gave us. */
void slu_program_enter(void);
void slu_program_leave(void);

#endif
