/* SPDX-License-Identifier: MIT */
/* The name of the public function that the program called. */
#ifndef SLU_CALLER_NAME_H
#define SLU_CALLER_NAME_H

/* Returns the name, static; NULL if it is not certain. Slow; allocates memory and opens files. */
const char *slu_caller_name(void);
/* Called before and after each function that the program provided. */
void slu_program_enter(void);
void slu_program_leave(void);

#endif
