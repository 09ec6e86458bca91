/* SPDX-License-Identifier: MIT */
/*
 * Which calls are simulated, and which are pure functions that the host's libraries may run. A
 * call of the library that is in neither list ends the simulator before anything runs, so that
 * nothing escapes it.
 */
#include "calls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "fabric/fabric.h"
#include "sim.h"
#include "system.h"

typedef void (*call)(void);

#define CALL(name)              \
    {                           \
#name, (call)sys_##name \
    }

static const struct {
    const char *name;
    call call;
} calls[] = {
    /* descriptor.c */
    CALL(close),
    CALL(fcntl),
    CALL(read),
    CALL(write),
    CALL(poll),
    CALL(ppoll),
    CALL(nanosleep),
    CALL(epoll_create1),
    CALL(epoll_ctl),
    CALL(epoll_wait),
    CALL(eventfd),
    CALL(timerfd_create),
    CALL(timerfd_settime),
    /* socket.c */
    CALL(socket),
    CALL(bind),
    CALL(listen),
    CALL(connect),
    CALL(accept4),
    CALL(getsockname),
    CALL(getpeername),
    CALL(shutdown),
    CALL(setsockopt),
    CALL(getsockopt),
    CALL(sendmsg),
    CALL(send),
    CALL(recvmsg),
    CALL(recv),
    /* heap.c */
    CALL(malloc),
    CALL(calloc),
    CALL(aligned_alloc),
    CALL(realloc),
    CALL(free),
    CALL(strdup),
    {"__getdelim", (call)sys_getdelim},
    CALL(getline),
    /* memory.c */
    CALL(memfd_create),
    CALL(ftruncate),
    CALL(fallocate),
    CALL(fstat),
    CALL(fstatfs),
    CALL(lseek),
    CALL(ioctl),
    CALL(mmap),
    CALL(munmap),
    CALL(madvise),
    CALL(msync),
    CALL(process_vm_readv),
    /* thread.c */
    CALL(pthread_create),
    CALL(pthread_self),
    CALL(pthread_cancel),
    CALL(pthread_clockjoin_np),
    CALL(pthread_join),
    CALL(pthread_detach),
    CALL(pthread_setname_np),
    CALL(pthread_mutex_init),
    CALL(pthread_mutex_destroy),
    CALL(pthread_mutex_lock),
    CALL(pthread_mutex_trylock),
    CALL(pthread_mutex_unlock),
    CALL(pthread_cond_init),
    CALL(pthread_cond_destroy),
    CALL(pthread_cond_wait),
    CALL(pthread_cond_timedwait),
    CALL(pthread_cond_signal),
    CALL(pthread_cond_broadcast),
    CALL(pthread_once),
    CALL(pthread_key_create),
    CALL(pthread_setspecific),
    CALL(pthread_setcancelstate),
    {"__errno_location", (call)sys_errno_location},
    {"__tls_get_addr", (call)sys_tls_get_addr},
    /* files.c */
    CALL(open),
    CALL(stat),
    CALL(access),
    CALL(fdopen),
    CALL(fdopendir),
    CALL(getenv),
    CALL(getpid),
    CALL(geteuid),
    CALL(uname),
    CALL(gethostname),
    CALL(getrlimit),
    CALL(setrlimit),
    CALL(sched_getaffinity),
    CALL(sched_yield),
    CALL(sysconf),
    CALL(prctl),
    CALL(syscall),
    CALL(getrandom),
    CALL(clock_gettime),
    CALL(getaddrinfo),
    CALL(getifaddrs),
    CALL(freeifaddrs),
    CALL(strtol),
    CALL(strtoul),
    {"strtoull", (call)sys_strtoul},
    CALL(abort),
    CALL(dlerror),
    /* Nothing forks, has handlers of signals, is unloaded, or is loaded further. */
    {"__register_atfork", (call)sys_zero},
    {"__cxa_atexit", (call)sys_zero},
    {"__cxa_finalize", (call)sys_zero},
    {"pthread_sigmask", (call)sys_zero},
    {"pthread_condattr_init", (call)sys_zero},
    {"pthread_condattr_setclock", (call)sys_zero},
    {"pthread_condattr_destroy", (call)sys_zero},
    {"dlclose", (call)sys_zero},
    {"dladdr", (call)sys_zero},
    {"backtrace", (call)sys_zero},
    {"dlopen", (call)sys_null},
    {"dlsym", (call)sys_null},
    {"ibv_get_device_list", (call)sys_null},
    /* sim.h */
    {"sim_rank", (call)sim_rank},
    {"sim_ranks", (call)sim_ranks},
    {"sim_program_random", (call)sim_program_random},
    {"sim_allgather", (call)sim_allgather},
    {"sim_shared", (call)sim_shared},
    {"sim_break", (call)sim_break},
    {"sim_note", (call)sim_note},
    {"sim_number", (call)sim_number},
    {"sim_chosen", (call)sim_chosen},
    {"sim_pause", (call)sim_pause},
    {"sim_own_time", (call)sim_own_time},
    {"sim_is_dead", (call)sim_is_dead},
    {"sim_is_troubled", (call)sim_is_troubled},
    {"sim_befell", (call)sim_befell},
    {"sim_strike", (call)sim_strike},
    {"sim_refuse", (call)sim_refuse},
    {"sim_has_refused", (call)sim_has_refused},
    {"sim_forget", (call)sim_forget},
    {"sim_slow", (call)sim_slow},
    {"sim_generation", (call)sim_generation},
    {"sim_scenario", (call)sim_scenario},
    /* fabric.h */
    {"sim_fabric_limits", (call)sim_fabric_limits},
    {"sim_fabric_register", (call)sim_fabric_register},
    {"sim_fabric_deregister", (call)sim_fabric_deregister},
    {"sim_fabric_queue", (call)sim_fabric_queue},
    {"sim_fabric_poll", (call)sim_fabric_poll},
    {"sim_fabric_alert", (call)sim_fabric_alert},
    {"sim_fabric_arm", (call)sim_fabric_arm},
    {"sim_fabric_wake", (call)sim_fabric_wake},
    {"sim_fabric_pair", (call)sim_fabric_pair},
    {"sim_fabric_endpoint", (call)sim_fabric_endpoint},
    {"sim_fabric_connect", (call)sim_fabric_connect},
    {"sim_fabric_state", (call)sim_fabric_state},
    {"sim_fabric_fail", (call)sim_fabric_fail},
    {"sim_fabric_destroy", (call)sim_fabric_destroy},
    {"sim_fabric_send", (call)sim_fabric_send},
    {"sim_fabric_receive", (call)sim_fabric_receive},
};

static const char *const pure[] = {
    "__cmsg_nxthdr",
    "__isoc99_sscanf",
    "atoi",
    "bcmp",
    "closedir",
    "crypto_auth_hmacsha256_final",
    "crypto_auth_hmacsha256_init",
    "crypto_auth_hmacsha256_update",
    "crypto_secretbox_easy",
    "crypto_secretbox_open_easy",
    "dirfd",
    "explicit_bzero",
    "fclose",
    "fgets",
    "freeaddrinfo",
    "gai_strerror",
    "getc",
    "htonl",
    "htons",
    "if_indextoname",
    "inet_ntop",
    "inet_pton",
    "json_array_get",
    "json_array_size",
    "json_delete",
    "json_integer_value",
    "json_loads",
    "json_object_get",
    "json_object_iter",
    "json_object_iter_key",
    "json_object_iter_next",
    "json_object_iter_value",
    "json_object_key_to_iter",
    "json_string_length",
    "json_string_value",
    "memchr",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "ntohl",
    "ntohs",
    "qsort",
    "readdir",
    "sigfillset",
    "snprintf",
    "sodium_bin2hex",
    "sodium_hex2bin",
    "sodium_init",
    "sodium_memcmp",
    "sodium_memzero",
    "strcasecmp",
    "strchr",
    "strcmp",
    "strcpy",
    "strcspn",
    "strerror",
    "strerrordesc_np",
    "strlen",
    "strncasecmp",
    "strncmp",
    "strncpy",
    "strnlen",
    "strpbrk",
    "strrchr",
    "strspn",
    "strstr",
    "strtok_r",
    "ungetc",
    "vsnprintf",
};

void *sim_resolve(const char *name)
{
    if (strcmp(name, "environ") == 0 || strcmp(name, "__environ") == 0) {
        static char **environment = sim_environ;
        return &environment;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(calls[i].name, name) == 0) {
            return (void *)(uintptr_t)calls[i].call;
        }
    }
    for (size_t i = 0; i < sizeof pure / sizeof *pure; i++) {
        if (strcmp(pure[i], name) == 0) {
            return dlsym(RTLD_DEFAULT, name);
        }
    }
    if (strncmp(name, "__tsan_", 7) == 0) {
        return sim_resolve_atomic(name);
    }
    return strncmp(name, "ibv_", 4) == 0 || strncmp(name, "_ibv_", 5) == 0
               ? (void *)(uintptr_t)sys_no_device
               : NULL;
}
