/* SPDX-License-Identifier: MIT */
/* The simulated calls, which are found by their names; and what their files share. */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "report.h"
#include "system.h"

/* Defines the simulated call of a name. sim_resolve() finds it as sys_NAME. */
#define SYS(type, name, ...)      \
    type sys_##name(__VA_ARGS__); \
    type sys_##name(__VA_ARGS__)

/* The address of a host in the network of hosts, in host byte order. */
uint32_t sim_host_address(const struct sim_host *host);
/* Makes a descriptor of a file of the host, which it takes over. */
int sim_file_make(int real);
/* Makes a descriptor of the file of an object, which was opened once more. */
int sim_file_make_again(const struct sim_object *object, int real);

/* These are called by other files. */
int sys_close(int fd);
uid_t sys_geteuid(void);

#endif
