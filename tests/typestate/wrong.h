/* SPDX-License-Identifier: MIT */
/*
 * Programs that misuse the library, one a function: its name, the warnings that gcc must give for
 * it, and its parameters. What it returns does not matter.
 */
#ifndef TYPESTATE_WRONG_H
#define TYPESTATE_WRONG_H

#define WRONG(name, warnings, ...) _Bool wrong_##name(__VA_ARGS__)

#endif
