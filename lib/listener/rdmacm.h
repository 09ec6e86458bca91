/* SPDX-License-Identifier: MIT */
/*
 * Connecting by address over rdma_cm: the part of listeners and of connect calls for addresses that
 * begin with "rdmacm:". The other side may be any program that uses rdma_cm, and nothing more is
 * known about it. It cannot prove anything, so a secret is refused. Each connection has one
 * channel.
 */
#ifndef SLU_LISTENER_RDMACM_H
#define SLU_LISTENER_RDMACM_H

#include <string.h>

#include "listener/joint.h"

#define SLU_RDMACM_SCHEME "rdmacm:"

/*
 * Returns the address behind the scheme, or NULL if there is no scheme: "rdmacm:7471" is a port of
 * a host.
 */
static inline const char *slu_rdmacm_address(const char *address)
{
    const size_t length = sizeof SLU_RDMACM_SCHEME - 1;

    if (address == NULL || strncmp(address, SLU_RDMACM_SCHEME, length) != 0 ||
        strchr(address + length, ':') == NULL)
        return NULL;
    return address + length;
}

/* Returns 0 if there is no secret, otherwise -EOPNOTSUPP with a text. */
static inline int slu_rdmacm_refuse_secret(const struct slu_secret *secret)
{
    return secret->bytes == NULL
               ? 0
               : slu_fail(EOPNOTSUPP, "a secret cannot be proven over rdma_cm: connect without "
                                      "\"rdmacm:\", or give \"\" as the secret_file, for none");
}

#ifdef HAVE_RDMACM

/*
 * rdmacm_listen.c and rdmacm_gate.c: Opens the gate of a listener. address includes the scheme.
 * Returns 0, or an error with a text.
 */
int slu_rdmacm_listen(struct sluice_listener *listener, const char *address);
/* Reads all events of rdma_cm: queues new connections, and notes which have left. */
void slu_rdmacm_read(struct slu_gate *gate);
/* Stops listening; connections that came before are not affected. NULL is allowed. */
void slu_rdmacm_unlisten(struct slu_gate *gate);
/* Frees the gate, once the listener has no incoming connections any more. */
void slu_rdmacm_forget(struct sluice_listener *listener);
/* Returns -EIO with a text if no connection can come any more, otherwise 0. NULL is allowed. */
int slu_rdmacm_check_gate(const struct slu_gate *gate);
/* Returns whether a queued connection has left; the listener receives no event for that. */
bool slu_rdmacm_has_left(const struct sluice_incoming *incoming);

/* rdmacm_dial.c: Dials. address includes the scheme. Undoes the joint on failure. */
int slu_rdmacm_connect(const char *address, const struct sluice_connect_attr *options,
                       struct slu_joint *joint, int64_t until);

/*
 * rdmacm_admit.c: Checks that a prepared joint can be connected over rdma_cm, whatever the other
 * side is. Returns 0, or an error of this program.
 */
int slu_rdmacm_expect(struct slu_joint *joint);
/* Returns 0 if own is NULL or fits an answer, otherwise -EINVAL with a text. */
int slu_rdmacm_check_answer(const struct sluice_private_data *own);
/*
 * Answers: sets up the queue pair of an expected joint as was agreed on, and accepts the
 * connection.
 */
int slu_rdmacm_answer(struct sluice_incoming *incoming, struct slu_joint *joint,
                      const struct sluice_private_data *own);
/* Polls an answered connection. Returns 1 if it is connected, 0 if not yet, or an error. */
int slu_rdmacm_look(struct sluice_incoming *incoming, struct slu_joint *joint);
/* Rejects a connection that was not answered yet, with a reason. */
void slu_rdmacm_reject(struct sluice_incoming *incoming, const char *reason);
/* Ends the connection, unless a channel has taken it over. */
void slu_rdmacm_drop(struct sluice_incoming *incoming);

/*
 * Steps of both sides, in this order. slu_rdmacm_check_context() returns 0, or -EOPNOTSUPP if the
 * context has no rdma_cm. slu_rdmacm_param() makes the parameters for the other side, within the
 * limits that the other side has sent (NULL: none yet). slu_rdmacm_join() sets up the queue pair as
 * agreed on. slu_rdmacm_hand_over() gives an established connection to the queue pair.
 */
struct rdma_conn_param;
int slu_rdmacm_check_context(const struct slu_joint *joint);
struct rdma_conn_param slu_rdmacm_param(const struct slu_joint *joint, uint32_t index,
                                        const struct slu_cm *other,
                                        const struct sluice_private_data *own);
int slu_rdmacm_join(struct slu_joint *joint, uint32_t index, struct slu_cm *cm);
int slu_rdmacm_hand_over(struct slu_joint *joint, uint32_t index, struct slu_cm *cm);

/*
 * The reason with which a listener rejects if its queue is full. A dialer of this library tries
 * again.
 */
#define SLU_RDMACM_BUSY "too many wait at this listener: try again"

#else

static inline int slu_rdmacm_fail(void)
{
    return slu_fail(EOPNOTSUPP, "this library was built without rdma_cm: configure it with "
                                "--with-rdmacm, or leave out \"rdmacm:\"");
}

static inline int slu_rdmacm_listen(struct sluice_listener *listener, const char *address)
{
    (void)listener;
    (void)address;
    return slu_rdmacm_fail();
}

static inline int slu_rdmacm_connect(const char *address, const struct sluice_connect_attr *options,
                                     struct slu_joint *joint, int64_t until)
{
    (void)address;
    (void)options;
    (void)joint;
    (void)until;
    return slu_rdmacm_fail();
}

/*
 * The others are never called: without rdma_cm there is neither a gate nor a connection from one.
 */
#define slu_rdmacm_read(gate) ((void)(gate))
#define slu_rdmacm_unlisten(gate) ((void)(gate))
#define slu_rdmacm_forget(listener) ((void)(listener))
#define slu_rdmacm_check_gate(gate) ((void)(gate), 0)
#define slu_rdmacm_has_left(incoming) ((void)(incoming), false)
#define slu_rdmacm_expect(joint) ((void)(joint), slu_rdmacm_fail())
#define slu_rdmacm_check_answer(own) ((void)(own), slu_rdmacm_fail())
#define slu_rdmacm_answer(incoming, joint, own) ((void)(joint), slu_rdmacm_fail())
#define slu_rdmacm_look(incoming, joint) ((void)(joint), slu_rdmacm_fail())
#define slu_rdmacm_reject(incoming, reason) ((void)(incoming), (void)(reason))
#define slu_rdmacm_drop(incoming) ((void)(incoming))

#endif

#endif
