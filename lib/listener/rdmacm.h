/* SPDX-License-Identifier: MIT */
/*
 * Connecting by address over rdma_cm: what the calls of a listener and of a connect do where
 * the address begins with "rdmacm:". The other side may be any program that speaks rdma_cm;
 * of it no more is known than that. Nothing is proven, so a secret is refused, and each
 * connection has one channel.
 */
#ifndef SLU_LISTENER_RDMACM_H
#define SLU_LISTENER_RDMACM_H

#include <string.h>

#include "listener/joint.h"

#define SLU_RDMACM_SCHEME "rdmacm:"

/* What is behind the scheme; NULL: there is none, for "rdmacm:7471" is a port of a host. */
static inline const char *slu_rdmacm_address(const char *address)
{
    const size_t length = sizeof SLU_RDMACM_SCHEME - 1;

    if (address == NULL || strncmp(address, SLU_RDMACM_SCHEME, length) != 0 ||
        strchr(address + length, ':') == NULL)
        return NULL;
    return address + length;
}

/* -EOPNOTSUPP with a text, if there is one. */
static inline int slu_rdmacm_refuse_secret(const struct slu_secret *secret)
{
    return secret->bytes == NULL
               ? 0
               : slu_fail(EOPNOTSUPP, "a secret cannot be proven over rdma_cm: connect without "
                                      "\"rdmacm:\", or give \"\" as the secret_file, for none");
}

#ifdef HAVE_RDMACM

/* rdmacm_listen.c: address is whole. Each returns 0 or an error with a text. */
int slu_rdmacm_listen(struct sluice_listener *listener, const char *address);
/* Takes who came, and notes who has left. */
void slu_rdmacm_read(struct slu_gate *gate);
/* Nobody comes any more; those who have are not affected. NULL is allowed. */
void slu_rdmacm_unlisten(struct slu_gate *gate);
/* With the last who has come. */
void slu_rdmacm_forget(struct sluice_listener *listener);
/* Nobody can come any more: 0 or -EIO with a text. NULL is allowed. */
int slu_rdmacm_check_gate(const struct slu_gate *gate);
/* Of one that waits, of which no event tells. */
bool slu_rdmacm_has_left(const struct sluice_incoming *incoming);

/* rdmacm_dial.c: address is whole; joint is undone if it fails. */
int slu_rdmacm_connect(const char *address, const struct sluice_connect_attr *options,
                       struct slu_joint *joint, int64_t until);

/*
 * rdmacm_admit.c: joint is prepared: whether it can be connected over rdma_cm, whoever is on the
 * other side: 0 or an error, which is our program's.
 */
int slu_rdmacm_expect(struct slu_joint *joint);
/* -EINVAL, unless it is NULL or what an answer can have. */
int slu_rdmacm_check_answer(const struct sluice_private_data *own);
/* joint is expected: it has what was agreed on, and the other side hears so. */
int slu_rdmacm_answer(struct sluice_incoming *incoming, struct slu_joint *joint,
                      const struct sluice_private_data *own);
/* Of one that was answered: 1: it is in; 0: not yet; or why it will not be. */
int slu_rdmacm_look(struct sluice_incoming *incoming, struct slu_joint *joint);
/* One that was not answered yet hears the reason. */
void slu_rdmacm_reject(struct sluice_incoming *incoming, const char *reason);
/* Ends its connection, unless a channel has it. */
void slu_rdmacm_drop(struct sluice_incoming *incoming);

/*
 * What both sides do: the context can be used: 0 or -EOPNOTSUPP; what is said to the other
 * side, of which is known what it allows (NULL: nothing yet); what was agreed on becomes the
 * queue pair's; and once it is connected, the connection is that of the queue pair.
 */
struct rdma_conn_param;
int slu_rdmacm_check_context(const struct slu_joint *joint);
struct rdma_conn_param slu_rdmacm_param(const struct slu_joint *joint, uint32_t index,
                                        const struct slu_cm *other,
                                        const struct sluice_private_data *own);
int slu_rdmacm_join(struct slu_joint *joint, uint32_t index, struct slu_cm *cm);
int slu_rdmacm_hand_over(struct slu_joint *joint, uint32_t index, struct slu_cm *cm);

/* What a listener says whose queue is full: who knows it tries again. */
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

/* The others are never called: there is no gate, and nobody who came through one. */
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
