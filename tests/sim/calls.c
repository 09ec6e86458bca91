/* SPDX-License-Identifier: MIT */
/*
 * Which calls are simulated, and which are pure functions that the host's libraries may run. A
 * call of the library that is neither ends the simulator before anything runs, so that nothing
 * escapes it.
 */
#include "calls.h"

#include <dlfcn.h>
#include <stdio.h>

/* Nothing forks, has handlers of signals, is unloaded, or is loaded further. */
static const char *const idle[] = {"__cxa_atexit",
                                   "__cxa_finalize",
                                   "__register_atfork",
                                   "backtrace",
                                   "dladdr",
                                   "dlclose",
                                   "dlopen",
                                   "dlsym",
                                   "ibv_get_device_list",
                                   "pthread_sigmask",
                                   "pthread_condattr_init",
                                   "pthread_condattr_setclock",
                                   "pthread_condattr_destroy"};

static const char *const pure[] = {"__cmsg_nxthdr",
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
                                   "strsep",
                                   "strspn",
                                   "strstr",
                                   "strtok_r",
                                   "ungetc",
                                   "vsnprintf"};

static long do_nothing(void)
{
    return 0;
}

static int call_device(void)
{
    sim_fail("a call of libibverbs, though there is no device");
}

static bool is_listed(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], name) == 0) {
            return true;
        }
    }
    return false;
}

#define IS_LISTED(name, list) is_listed(name, list, sizeof list / sizeof *list)

void *sim_resolve(const char *name)
{
    static char *none[] = {NULL}, **environment = none;
    char own[80];
    void *found;
    if (strcmp(name, "environ") == 0 || strcmp(name, "__environ") == 0) {
        return &environment;
    }
    snprintf(own, sizeof own, "sys_%s", name);
    found = dlsym(RTLD_DEFAULT, own);
    if (found == NULL && (strncmp(name, "sim_", 4) == 0 || IS_LISTED(name, pure))) {
        found = dlsym(RTLD_DEFAULT, name);
    }
    if (found == NULL && IS_LISTED(name, idle)) {
        found = (void *)(uintptr_t)do_nothing;
    }
    if (found == NULL && (strncmp(name, "ibv_", 4) == 0 || strncmp(name, "_ibv_", 5) == 0)) {
        found = (void *)(uintptr_t)call_device;
    }
    return found;
}
