/* SPDX-License-Identifier: MIT */
/*
 * Errors. A call that fails returns a negative errno value (a constructor
 * returns NULL and sets errno, which is unspecified when it returns an object),
 * and sluice_last_error() says in words what failed, which object, and what to
 * try. Calls that return no object leave errno alone. A request that fails has
 * a status, in the terms of RDMA, and an error class, which is the same on
 * every transport and device.
 *
 * If SLUICE_MISUSE=abort is in the environment, a call that is a mistake of the
 * program prints its name and aborts the program instead; sluice_errors(7)
 * lists these calls.
 */
#ifndef SLUICE_ERROR_H
#define SLUICE_ERROR_H

#include <stdint.h>

#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Status of a request. Values below 64 are those of enum ibv_wc_status of
 * libibverbs, on every transport; a device may report one that is not listed.
 */
enum sluice_status {
    SLUICE_STATUS_SUCCESS = 0,
    SLUICE_STATUS_LOC_LEN_ERR = 1,        /* message longer than the receive */
    SLUICE_STATUS_LOC_QP_OP_ERR = 2,      /* local queue pair inconsistency */
    SLUICE_STATUS_LOC_PROT_ERR = 4,       /* local SGE outside its memory region */
    SLUICE_STATUS_WR_FLUSH_ERR = 5,       /* the queue pair was in error */
    SLUICE_STATUS_BAD_RESP_ERR = 7,       /* the peer sent an invalid response */
    SLUICE_STATUS_LOC_ACCESS_ERR = 8,     /* local memory without the right */
    SLUICE_STATUS_REM_INV_REQ_ERR = 9,    /* the peer found the request invalid */
    SLUICE_STATUS_REM_ACCESS_ERR = 10,    /* remote key, range or right refused */
    SLUICE_STATUS_REM_OP_ERR = 11,        /* the peer could not finish it */
    SLUICE_STATUS_RETRY_EXC_ERR = 12,     /* the peer does not answer */
    SLUICE_STATUS_RNR_RETRY_EXC_ERR = 13, /* the peer posted no receive */
    SLUICE_STATUS_FATAL_ERR = 19,         /* the device or its port failed */
    SLUICE_STATUS_GENERAL_ERR = 21,       /* the device gives no reason */
    SLUICE_STATUS_DEADLINE = 64,          /* its deadline passed; set by the library */
    SLUICE_STATUS_PEER_CLOSED = 65        /* the peer closed the connection; set by the library */
};

/* Class of an error: what to do about it. Each has one errno value. */
enum sluice_error_class {
    SLUICE_CLASS_NONE = 0,      /* success, 0 */
    SLUICE_CLASS_PEER_LOST = 1, /* the peer or the path to it is gone, ECONNRESET */
    SLUICE_CLASS_TIMEOUT = 2,   /* the deadline passed, ETIMEDOUT */
    SLUICE_CLASS_ACCESS = 3,    /* remote key, range or right, EACCES */
    SLUICE_CLASS_TRUNCATED = 4, /* message longer than the receive, EMSGSIZE */
    SLUICE_CLASS_CANCELLED = 5, /* ended because of another error, ECANCELED */
    SLUICE_CLASS_LOCAL = 6,     /* own memory named wrongly, EFAULT */
    SLUICE_CLASS_DEVICE = 7,    /* the device failed, EIO */
    SLUICE_CLASS_PROTOCOL = 8   /* the peer broke the protocol, EPROTO */
};

/* The first error of a channel, or of one peer of a multichannel. */
struct sluice_error {
    uint32_t size;        /* set to sizeof(struct sluice_error) by the caller */
    uint32_t peer;        /* index of the peer; 0 on a channel */
    uint32_t opcode;      /* enum sluice_opcode of the request; 0 if none */
    uint32_t status;      /* enum sluice_status */
    uint32_t error_class; /* enum sluice_error_class */
    uint32_t vendor;      /* the device's own code, 0 if it gave none */
    int32_t error;        /* negative errno value of the class, or of the failed handshake */
    uint32_t reserved;    /* written as 0 */
    char text[352];       /* what failed, which peer, and what to try; always terminated */
};

/*
 * Returns the text of the calling thread's last failed call: what failed, which
 * object, and what to try. Never NULL; empty before the first failure. Valid
 * until the thread's next call into the library. The text is meaningful only
 * after a failure: a successful call may leave an older text, or that of a peer
 * that it reports as failed.
 */
SLUICE_EXPORT const char *sluice_last_error(void);

/* Returns the name of a status, such as "remote access error". Static, never NULL. */
SLUICE_EXPORT const char *sluice_status_name(uint32_t status);

/* Returns the name of a class, such as "peer lost". Static, never NULL. */
SLUICE_EXPORT const char *sluice_error_class_name(uint32_t error_class);

#ifdef __cplusplus
}
#endif

#endif
