/* SPDX-License-Identifier: MIT */
/*
 * The calls of the library: each is counted and noted before it is made, so that the parent knows
 * the call that a process is in, and calls that were never made.
 */
#ifndef SOAK_CALLS_H
#define SOAK_CALLS_H

#include <stdint.h>

#include "../../support/forms.h"

#define SOAK_EITHER(X, name) X(channel_##name) X(multichannel_##name)
/* Beside those that post requests, which are the rows of support/forms.h. */
#define SOAK_CALLS(X)                   \
    SOAK_EITHER(X, poll)                \
    SOAK_EITHER(X, wait)                \
    SOAK_EITHER(X, next)                \
    SOAK_EITHER(X, cancel)              \
    SOAK_EITHER(X, detach)              \
    SOAK_EITHER(X, flush)               \
    SOAK_EITHER(X, fd)                  \
    SOAK_EITHER(X, arm)                 \
    SOAK_EITHER(X, wake)                \
    SOAK_EITHER(X, wait_connected)      \
    SOAK_EITHER(X, shutdown)            \
    SOAK_EITHER(X, counters)            \
    SOAK_EITHER(X, close)               \
    SOAK_EITHER(X, scope_begin)         \
    SOAK_EITHER(X, list_prepare)        \
    X(list_submit)                      \
    X(list_post)                        \
    X(list_wait)                        \
    X(list_result)                      \
    X(list_free)                        \
    X(channel_prepare)                  \
    X(channel_reset)                    \
    X(channel_state)                    \
    X(channel_error)                    \
    X(channel_query)                    \
    X(prepared_channel_endpoint)        \
    X(prepared_channel_handshake)       \
    X(prepared_channel_free)            \
    X(multichannel_prepare)             \
    X(prepared_multichannel_endpoints)  \
    X(prepared_multichannel_handshake)  \
    X(prepared_multichannel_free)       \
    X(multichannel_peers)               \
    X(multichannel_peer_state)          \
    X(multichannel_peer_error)          \
    X(multichannel_peer_query)          \
    X(multichannel_peer_counters)       \
    X(multichannel_peer_add)            \
    X(multichannel_peer_remove)         \
    X(multichannel_peer_remote)         \
    X(multichannel_peer_reset)          \
    X(multichannel_peer_handshake)      \
    X(multichannel_peer_wait_connected) \
    X(scope_attach)                     \
    X(scope_post_list)                  \
    X(scope_poll)                       \
    X(scope_wait)                       \
    X(scope_end)                        \
    X(mr_alloc)                         \
    X(mr_register)                      \
    X(mr_deregister)

enum call {
#define SOAK_ENUM(name, ...) CALL_##name,
    FORM_ROWS(SOAK_ENUM) SOAK_CALLS(SOAK_ENUM)
#undef SOAK_ENUM
        CALLS
};

extern const char *const call_names[CALLS];

void begin_call(enum call call);
void end_call(void);
/* Chooses the peers of the next calls. */
void aim(uint32_t peer, uint32_t count);

/* The value of a call that posts requests. */
int call_form(const struct form *form, const struct form_call *call);

/* The value of sluice_NAME(...). */
#define CALL(name, ...)                                   \
    ({                                                    \
        begin_call(CALL_##name);                          \
        __auto_type called_ = sluice_##name(__VA_ARGS__); \
        end_call();                                       \
        called_;                                          \
    })
#define CALL_VOID(name, ...)        \
    do {                            \
        begin_call(CALL_##name);    \
        sluice_##name(__VA_ARGS__); \
        end_call();                 \
    } while (0)

/* The call of an office: of its channel, or of its multichannel. */
#define EITHER(office, name, ...)                                               \
    ((office)->channel ? CALL(channel_##name, (office)->channel, ##__VA_ARGS__) \
                       : CALL(multichannel_##name, (office)->mc, ##__VA_ARGS__))

#endif
