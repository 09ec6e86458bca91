/* SPDX-License-Identifier: MIT */
/* Structs that begin with their size: attributes and information. */
#ifndef SLU_ATTR_H
#define SLU_ATTR_H

#include <stdint.h>

#include <sluice/version.h>

/*
 * The sizes of public structs in version 1.0, or in the version that they come in. Programs pass
 * them, so a size never changes: if a struct grows, its first size stays.
 */
#define SLU_FIRST_sluice_accept_attr 16
#define SLU_FIRST_sluice_admitted 120
#define SLU_FIRST_sluice_agent_attr 96
#define SLU_FIRST_sluice_agent_info 144
#define SLU_FIRST_sluice_agent_local 48
#define SLU_FIRST_sluice_agent_mr_info 56
#define SLU_FIRST_sluice_agent_peer_info 400
#define SLU_FIRST_sluice_allocator_attr 32
#define SLU_FIRST_sluice_allocator_info 56
#define SLU_FIRST_sluice_blocks 112
#define SLU_FIRST_sluice_buffer_info 136
#define SLU_FIRST_sluice_buffer_service_attr 24
#define SLU_FIRST_sluice_channel_attr 144
#define SLU_FIRST_sluice_channel_info 248
#define SLU_FIRST_sluice_choice_info 320
#define SLU_FIRST_sluice_connect_attr 32
#define SLU_FIRST_sluice_context_attr 24
#define SLU_FIRST_sluice_context_info 168
#define SLU_FIRST_sluice_counters 856
#define SLU_FIRST_sluice_device_info 312
#define SLU_FIRST_sluice_error 384
#define SLU_FIRST_sluice_exchange_attr 48
#define SLU_FIRST_sluice_exchange_info 144
#define SLU_FIRST_sluice_exchange_provider 40
#define SLU_FIRST_sluice_gid_info 116
#define SLU_FIRST_sluice_histogram 9256
#define SLU_FIRST_sluice_incoming_info 1108
#define SLU_FIRST_sluice_launch_info 504
#define SLU_FIRST_sluice_listen_attr 24
#define SLU_FIRST_sluice_mr_cache_attr 16
#define SLU_FIRST_sluice_mr_cache_info 48
#define SLU_FIRST_sluice_node_attr 40
#define SLU_FIRST_sluice_port_info 192
#define SLU_FIRST_sluice_scope_report 48
#define SLU_FIRST_sluice_variable_info 840

/* Until 1.0.0 is released, a struct that grows has another first size. */
#define SLU_ATTR_IS_FIRST(type)                                                              \
    ((void)sizeof(struct {                                                                   \
        _Static_assert(SLUICE_VERSION_MAJOR >= 1 || sizeof(struct type) == SLU_FIRST_##type, \
                       "change SLU_FIRST_" #type);                                           \
        char one;                                                                            \
    }))

/*
 * The largest sizes that are accepted, for most structs and for those that are larger already. A
 * larger size comes from uninitialised memory.
 */
#define SLU_ATTR_MOST 4096
#define SLU_LARGE_MOST 65536

/*
 * Copies an attribute struct, whose first member is its size. A shorter struct, of an older
 * program, is padded with zeros. A longer one must have zeros beyond what this library knows, or
 * the call fails with -E2BIG. NULL gives all zeros. first_size is the size in the struct's first
 * release: a smaller one, such as the size of a pointer, is a mistake whose fields would be
 * ignored.
 */
int slu_attr_copy(void *to, uint32_t to_size, uint32_t first_size, const void *from,
                  const char *name);
#define SLU_ATTR_COPY(type, to, from) \
    (SLU_ATTR_IS_FIRST(type),         \
     slu_attr_copy((to), sizeof(struct type), SLU_FIRST_##type, (from), #type))

/*
 * Does the same for a struct that the library fills. slu_info_check() comes first, and returns 0;
 * -EINVAL (NULL, or a size below the first one) or -E2BIG, with a text. slu_info_copy() writes the
 * fields that fit, and zeros for fields that this library does not know. The size stays as the
 * program set it.
 */
int slu_info_check(const void *to, uint32_t known, uint32_t first_size, const char *name);
#define SLU_INFO_CHECK(type, to) \
    (SLU_ATTR_IS_FIRST(type), slu_info_check((to), sizeof(struct type), SLU_FIRST_##type, #type))
void slu_info_copy(void *to, const void *from, uint32_t known);

#endif
