/* SPDX-License-Identifier: MIT */
/*
 * sluice-info: what is known of a host, its devices and this process. Facts are found once
 * (facts.c and the probes), and then told by sections and judged by the advice, so that one
 * cannot contradict the other. What a device or a variable is for the library is asked of the
 * library alone.
 */
#ifndef INFO_H
#define INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice.h>

#include "out.h"

/* Of the JSON: raised when a field changes its meaning or goes, not when one is added. */
#define INFO_FORMAT 1

#define INFO_TEXT 320
#define INFO_HUGE 8
/* Local ranks whose devices are told. */
#define INFO_RANKS 8

/* A limit that there is not, in bytes or pieces. */
#define INFO_NO_LIMIT UINT64_MAX

/* Exit statuses, as the manual page has them. */
enum { STATUS_FINE = 0, STATUS_ADVICE = 1, STATUS_USAGE = 2, STATUS_FAILED = 3 };

struct options {
    const char *device; /* as SLUICE_DEVICE has it; NULL: none */
    uint64_t sections;  /* a bit for each */
    uint32_t timeout;   /* seconds */
    bool json;
    bool advice; /* that alone */
};

struct limit {
    uint64_t soft, hard; /* INFO_NO_LIMIT: none */
};

struct huge {
    uint64_t bytes, total, free; /* of a page; pages */
};

/* Whether a process may read the memory of another one of this user. */
enum { READS_ALLOWED = 0, READS_UNTRIED = -1 }; /* or the errno value */

struct host {
    char kernel[160]; /* name, release and machine */
    char container[64];
    char cpus[160]; /* that this process may run on, "0-3,8" */
    struct limit memlock, nofile;
    bool locks_freely; /* CAP_IPC_LOCK: the limit of locked memory is not for this process */
    bool has_shm;
    uint64_t shm_bytes, shm_free;
    int reads;
    int ptrace_scope; /* Yama's; -1: there is no Yama */
    uint32_t huge_count;
    struct huge huge[INFO_HUGE];
    char transparent[16];   /* huge pages; empty: not known */
    uint64_t memory;        /* of the host, bytes; 0: not known */
    uint64_t memory_limit;  /* of the control group */
    char memory_group[200]; /* which one sets it */
};

/* What the kernel has of RDMA, whatever libibverbs makes of it. */
struct kernel {
    bool has_class;  /* the kernel knows of RDMA */
    bool has_uverbs; /* and lets programs use it */
    bool has_nodes;  /* /dev/infiniband */
    bool has_cm;     /* its rdma_cm is there for programs */
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
    char limits_error[INFO_TEXT]; /* empty: limits are there */
    char driver[64];              /* of the kernel; empty: none, or not known */
    char near_cpus[160];          /* of its NUMA node; empty: not known */
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
    char devices_error[INFO_TEXT]; /* empty: the list is there */
    char choice_error[INFO_TEXT];
    uint32_t by_rank_count;       /* 0: not known, or another one is named by --device */
    uint32_t by_rank[INFO_RANKS]; /* indices of the devices of the first local ranks */
    uint32_t variable_count;
    struct sluice_variable_info *variables;
    int launch_result; /* of sluice_exchange_launch() */
    struct sluice_launch_info launch;
    char launch_error[INFO_TEXT];
    char launch_warning[INFO_TEXT]; /* that the library logged; or empty */
    uint32_t advice_count;
    struct advice *advice;
};

/* A section: what it is called, what it says, and what it needs to know. */
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

/* options.c: 0; 1: it has said what was asked for; -1: they are wrong, and it has said how. */
int options_read(struct options *options, int argc, char **argv);

/*
 * watch.c: does the work in a child and waits for it so long: its exit status, or STATUS_FAILED.
 * If it takes longer, or dies, that is said with what it was about to do, which it tells by
 * watch_step().
 */
int watch(int (*work)(const struct options *options), const struct options *options);
void watch_step(const char *what);

/* facts.c: what these need. Nothing fails but for memory, which ends the process. */
void facts_find(struct facts *facts, const struct options *options, uint32_t needs);
void facts_free(struct facts *facts);
/* One element more, zeroed; the old ones may move. */
void *facts_grow(void *array, uint32_t *count, size_t bytes);

/* The probes, each in a file of its name. */
void host_find(struct host *host);
int process_vm_try(void);
void kernel_find(struct kernel *kernel);
void devices_find(struct facts *facts);

/* files.c: of the kernel's. A file that is not there is empty, and no number. */
bool file_text(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool file_number(uint64_t *number, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The last name of where a link leads, or an empty text. */
void file_link(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* advice.c and advice_device.c: fill facts->advice, if all is known. */
void advise(struct facts *facts);
void advise_devices(struct facts *facts);
void advice_add(struct facts *facts, const char *id, const char *about, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* words.c: numbers of the library, for people and, the same, in JSON. */
const char *word_state(uint32_t port_state);
const char *word_link(uint32_t link_layer);
const char *word_gid(uint32_t gid_type);
const char *word_verdict(uint32_t verdict);
const char *word_variable(uint32_t state);
const char *word_kind(uint32_t exchange_kind);
const char *word_atomics(uint32_t atomics);
const char *word_level(uint32_t level);
/* "64 KiB", "not limited"; text is returned. */
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
/* build.c: the version in sluice_version(), without what follows it. */
const char *library_version(char text[32]);

#endif
