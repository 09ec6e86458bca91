/* SPDX-License-Identifier: MIT */
/*
 * sluice-info: describes a host, its devices and this process. Facts are found once (facts.c
 * and the probes). Sections print them and the advice judges them, so that the two cannot
 * contradict each other. How the library sees a device or a variable is asked of the library,
 * and never worked out here.
 */
#ifndef INFO_H
#define INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice.h>

#include "out.h"

/* Version of the JSON format: raised if a field is removed or changes its meaning. */
#define INFO_FORMAT 1

#define INFO_TEXT 320
#define INFO_HUGE 8
/* Local ranks whose devices are listed. */
#define INFO_RANKS 8

/* No limit, of bytes or of a count. */
#define INFO_NO_LIMIT UINT64_MAX

/* Exit statuses, as the manual page has them. */
enum { STATUS_FINE = 0, STATUS_ADVICE = 1, STATUS_USAGE = 2, STATUS_FAILED = 3 };

struct options {
    const char *device; /* with the syntax of SLUICE_DEVICE; or NULL */
    uint64_t sections;  /* one bit each */
    uint32_t timeout;   /* seconds */
    bool json;
    bool advice; /* advice only */
};

struct limit {
    uint64_t soft, hard; /* INFO_NO_LIMIT: none */
};

struct huge {
    uint64_t bytes;       /* of a page */
    uint64_t total, free; /* pages */
};

/* Whether a process may read the memory of another one of this user; or an errno value. */
enum { READS_ALLOWED = 0, READS_UNTRIED = -1 };

struct host {
    char kernel[160]; /* name, release and machine */
    char container[64];
    char cpus[160]; /* that this process may run on, "0-3,8" */
    struct limit memlock, nofile;
    bool locks_freely; /* CAP_IPC_LOCK: the limit of locked memory does not apply */
    bool has_shm;
    uint64_t shm_bytes, shm_free;
    int reads;
    int ptrace_scope; /* of Yama; -1: no Yama */
    uint32_t huge_count;
    struct huge huge[INFO_HUGE];
    char transparent[16];   /* huge pages; empty: not known */
    uint64_t memory;        /* of the host, bytes; 0: not known */
    uint64_t memory_limit;  /* of the control group */
    char memory_group[200]; /* the group that sets the limit */
};

/* RDMA in the kernel, including devices that libibverbs does not show. */
struct kernel {
    bool has_class;  /* the kernel has RDMA */
    bool has_uverbs; /* programs can use it */
    bool has_nodes;  /* /dev/infiniband exists */
    bool has_cm;     /* programs can use rdma_cm */
    uint32_t count;
    struct kernel_device {
        char name[64], driver[64];
    } * devices;
};

struct device {
    struct sluice_device_info info;
    struct sluice_port_info *ports;
    struct sluice_gid_info *gids;
    struct sluice_choice_info choice; /* if facts.choice_error is empty */
    struct sluice_context_info limits;
    char limits_error[INFO_TEXT]; /* empty: limits are valid */
    char driver[64];              /* in the kernel; empty: none or unknown */
    char near_cpus[160];          /* of its NUMA node; empty: unknown */
};

struct advice {
    char id[24];
    char about[64]; /* a device, a port, a variable; or empty */
    char text[512];
};

struct facts {
    const struct options *options;
    struct host host;
    struct kernel kernel;
    uint32_t device_count;
    struct device *devices;
    char devices_error[INFO_TEXT]; /* empty: the list is valid */
    char choice_error[INFO_TEXT];
    uint32_t by_rank_count;       /* 0: unknown, or --device names a device */
    uint32_t by_rank[INFO_RANKS]; /* index of the device of each of the first local ranks */
    uint32_t variable_count;
    struct sluice_variable_info *variables;
    int launch_result; /* of sluice_launch_query() */
    struct sluice_launch_info launch;
    char launch_error[INFO_TEXT];
    char launch_warning[INFO_TEXT]; /* logged by the library; or empty */
    uint32_t advice_count;
    struct advice *advice;
};

/* A section of the output, and the facts that it needs. */
struct section {
    const char *name, *title;
    uint32_t needs; /* NEEDS_* */
    void (*print)(const struct facts *facts, struct out *out);
};
#define NEEDS_HOST (UINT32_C(1) << 0)
#define NEEDS_DEVICES (UINT32_C(1) << 1)
#define NEEDS_ENVIRONMENT (UINT32_C(1) << 2)
#define NEEDS_LAUNCH (UINT32_C(1) << 3)
#define NEEDS_ALL UINT32_MAX
extern const struct section info_sections[];
extern const uint32_t info_section_count;

/* options.c: returns 0; 1 if all was printed, as by --help; -1 after an error message. */
int options_read(struct options *options, int argc, char **argv);

/*
 * watch.c: runs the work in a child process, with a timeout. Returns its exit status, or
 * STATUS_FAILED. If it takes longer, or dies, an error message names the last watch_step().
 */
int watch(int (*work)(const struct options *options), const struct options *options);
void watch_step(const char *what);

/* facts.c: finds the needed facts. Without memory it ends the process; nothing else fails. */
void facts_find(struct facts *facts, const struct options *options, uint32_t needs);
void facts_free(struct facts *facts);
/* Adds a zeroed element to an array, which may move. */
void *facts_grow(void *array, uint32_t *count, size_t bytes);

/* The probes, each in a file of its name. */
void host_find(struct host *host);
int process_vm_try(void);
void kernel_find(struct kernel *kernel);
void devices_find(struct facts *facts);

/* files.c: reads small files of the kernel. A missing file is an empty text, and no number. */
bool file_text(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool file_number(uint64_t *number, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Gets the last component of a link's target, or an empty text. */
void file_link(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* advice*.c: fill facts->advice, which needs all facts. */
void advise(struct facts *facts);
void advise_devices(struct facts *facts);
void advise_environment(struct facts *facts);
void advice_add(struct facts *facts, const char *id, const char *about, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* words.c: names of the library's numbers, in text and in JSON. */
const char *word_state(uint32_t port_state);
const char *word_link(uint32_t link_layer);
const char *word_gid(uint32_t gid_type);
const char *word_verdict(uint32_t verdict);
const char *word_variable(uint32_t state);
const char *word_kind(uint32_t exchange_kind);
const char *word_atomics(uint32_t atomics);
const char *word_level(uint32_t level);
/* Return "64 KiB" or "not limited", perhaps in text. */
const char *bytes_text(uint64_t bytes, char text[32]);
const char *limit_text(uint64_t count, char text[32]);

/* The sections. */
void print_build(const struct facts *facts, struct out *out);
void print_host(const struct facts *facts, struct out *out);
void print_devices(const struct facts *facts, struct out *out);
void print_choice(const struct facts *facts, struct out *out);
void print_environment(const struct facts *facts, struct out *out);
void print_launcher(const struct facts *facts, struct out *out);
void print_advice(const struct facts *facts, struct out *out);
/* build.c: returns the version at the beginning of sluice_version(). */
const char *library_version(char text[32]);

#endif
