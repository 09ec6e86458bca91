/* SPDX-License-Identifier: MIT */
/*
 * Loads a shared object many times into this process, each with its own variables: that is how one
 * process has many simulated ones. Names that the object does not define are looked up in the
 * table of simulated calls, so that its code runs as it was compiled.
 */
#ifndef SIM_LOADER_H
#define SIM_LOADER_H

#include <stddef.h>
#include <stdint.h>

struct sim_module;

struct sim_image {
    const struct sim_module *module;
    char *base;
    char *pristine; /* its variables before anything has run, without those of zeros */
};

/* Reads a file once. resolve() returns the address of a name, or NULL. */
struct sim_module *sim_module_open(const char *path, void *(*resolve)(const char *name));
/*
 * Makes a further image, for which sim_image_construct() is to be called. Images that were freed
 * are used again, the last one first: only their variables are made new.
 */
void sim_image_make(const struct sim_module *module, struct sim_image *image);
void sim_image_construct(const struct sim_image *image);
void sim_image_free(struct sim_image *image);
/* Returns the address of a name that the image exports, or NULL. */
void *sim_image_find(const struct sim_image *image, const char *name);
/* Ranges of addresses, each at the same place in every run. */
enum sim_range { SIM_HEAP = 1, SIM_MAPS, SIM_STACKS, SIM_IMAGES };

/* Reserves the first bytes of a range, which may not be touched yet. */
void *sim_reserve(enum sim_range range, size_t bytes);

/*
 * The thread-local variables of the task that runs: code finds them by an offset from the host's
 * thread, so a switch of tasks exchanges them.
 */
enum { SIM_TLS_BYTES = 192 };
extern _Thread_local char sim_thread_variables[SIM_TLS_BYTES];
/* Fills in what a further thread begins with. */
void sim_image_tls(const struct sim_image *image, char *variables);

#endif
