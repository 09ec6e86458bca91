/* SPDX-License-Identifier: MIT */
/*
 * The text of a thread's last failure, the names of statuses and classes, and the mapping from
 * statuses to classes, which is the same on every transport.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <sluice/request.h>

#include "base/error.h"
#include "base/probe.h"
#include "base/thread_text.h"

#ifndef HAVE_STRERRORDESC_NP
const char *slu_error_text(int error)
{
#ifdef __GLIBC__
    /* Until glibc 2.32, strerror(3) gives all threads the same memory for unknown errors. */
    static _Thread_local char unknown[40];

    return strerror_r(error, unknown, sizeof unknown);
#else
    return strerror(error);
#endif
}
#endif

void slu_set_text(const char *format, va_list arguments)
{
    struct slu_thread_text *texts = slu_thread_text();

    if (texts == NULL)
        return;
    if (!texts->continues)
        texts->last.first[0] = '\0';
    texts->continues = false;
    vsnprintf(texts->last.bytes, sizeof texts->last.bytes, format, arguments);
}

int slu_fail(int err, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    slu_set_text(format, arguments);
    va_end(arguments);
    SLU_PROBE2(failure, err, sluice_last_error());
    return -err;
}

void *slu_none(int error)
{
    struct slu_thread_text *texts = slu_thread_text();

    if (texts != NULL && texts->last.first[0] == '\0')
        memcpy(texts->last.first, texts->last.bytes, sizeof texts->last.first);
    errno = -error;
    return NULL;
}

void slu_made(void)
{
    struct slu_thread_text *texts = slu_thread_text_if_any();

    if (texts != NULL)
        texts->last.first[0] = '\0';
}

const char *slu_first_failure(void)
{
    const struct slu_thread_text *texts = slu_thread_text_if_any();

    return texts != NULL && texts->last.first[0] != '\0' ? texts->last.first : NULL;
}

/*
 * A program that checks no result makes one object after the other, and uses them. The first
 * failure is the one that explains the rest.
 */
const char *slu_earlier_failure(void)
{
    struct slu_thread_text *texts = slu_thread_text_if_any();

    if (texts == NULL || texts->last.first[0] == '\0')
        return "";
    texts->continues = true;
    snprintf(texts->hint, sizeof texts->hint, "%s%s", SLU_TEXT_EARLIER, texts->last.first);
    return texts->hint;
}

const char *sluice_last_error(void)
{
    const struct slu_thread_text *texts = slu_thread_text_if_any();

    return texts != NULL ? texts->last.bytes : slu_thread_text_missing();
}

void slu_text_save(struct slu_text *text)
{
    const struct slu_thread_text *texts = slu_thread_text_if_any();

    *text = texts != NULL ? texts->last : (struct slu_text){.bytes = ""};
}

void slu_text_restore(const struct slu_text *text)
{
    struct slu_thread_text *texts =
        text->bytes[0] != '\0' ? slu_thread_text() : slu_thread_text_if_any();

    if (texts != NULL)
        texts->last = *text;
}

int slu_name_source(int error, const char *source)
{
    struct slu_text text;

    if (error >= 0 || source == NULL)
        return error;
    slu_text_save(&text);
    return slu_fail(-error, "%s; %s names this file", text.bytes, source);
}

/* In the order of enum ibv_wc_status. */
static const char *const status_names[] = {
    "success",
    "local length error",
    "local queue pair operation error",
    "local EE context operation error",
    "local protection error",
    "flushed",
    "memory window bind error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "receiver-not-ready retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "remote aborted",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout",
    "general error",
    "tag matching error",
    "tag matching rendezvous incomplete",
};

const char *sluice_status_name(uint32_t status)
{
    if (status < sizeof status_names / sizeof status_names[0])
        return status_names[status];
    if (status == SLUICE_STATUS_PEER_CLOSED)
        return "closed by the peer";
    return status == SLUICE_STATUS_DEADLINE ? "deadline passed" : "unknown status";
}

static const struct {
    int err;
    const char *name;
    const char *hint;
} classes[SLU_CLASSES] = {
    [SLUICE_CLASS_NONE] = {0, "none", ""},
    [SLUICE_CLASS_PEER_LOST] =
        {ECONNRESET, "peer lost",
         "the peer closed or refused the connection (an endpoint that was swapped or used "
         "before, or is stale), its process or host is gone, or it asked for memory "
         "that our side refused"},
    [SLUICE_CLASS_TIMEOUT] = {ETIMEDOUT, "timeout",
                              "see whether the peer took part, or allow more time"},
    [SLUICE_CLASS_ACCESS] =
        {EACCES, "access",
         "check remote key, range and rights of the peer's region, and what its channel "
         "lets peers do"},
    [SLUICE_CLASS_TRUNCATED] =
        {EMSGSIZE, "truncated",
         "the receive posted for it must be as long as the message and lie in memory "
         "with LOCAL_WRITE"},
    [SLUICE_CLASS_CANCELLED] = {ECANCELED, "cancelled", "see the first error of this peer"},
    [SLUICE_CLASS_LOCAL] =
        {EFAULT, "local",
         "check that the SGEs lie in memory registered with this protection domain, "
         "with LOCAL_WRITE for a receive, read or atomic, and that the port is up"},
    [SLUICE_CLASS_DEVICE] = {EIO, "device", "check the device, its port and its cable"},
    [SLUICE_CLASS_PROTOCOL] = {EPROTO, "protocol",
                               "both sides must run compatible versions of the library"},
};

int slu_listed(int error)
{
    switch (-error) {
    case 0:
    case EINVAL:
    case ENETDOWN:
    case EADDRNOTAVAIL:
        return error;
    case EMFILE:
    case ENFILE:
        return -EMFILE;
    case ENOMEM:
    case ENOSPC: /* of watches of epoll(7), or of entries of a device */
    case ENOBUFS:
    case EDQUOT:
    case EAGAIN: /* of threads, or of locked memory */
        return -ENOMEM;
    case EOPNOTSUPP:
    case ENOSYS:
    case EPROTONOSUPPORT:
        return -EOPNOTSUPP;
    case EACCES:
    case EPERM:
        return -EACCES;
    default:
        return -EIO;
    }
}

const char *sluice_error_class_name(uint32_t error_class)
{
    return error_class < SLU_CLASSES ? classes[error_class].name : "unknown class";
}

int slu_class_error(enum sluice_error_class error_class)
{
    return -classes[error_class].err;
}

const char *slu_class_hint(enum sluice_error_class error_class)
{
    return classes[error_class].hint;
}

/*
 * Devices disagree on the status of one fault: a receive that is too small is
 * LOC_LEN_ERR on mlx5 and LOC_QP_OP_ERR on rxe at the receiver, REM_INV_REQ_ERR
 * or REM_OP_ERR at the sender. The operation tells them apart.
 */
enum sluice_error_class slu_class_of(uint32_t status, uint32_t opcode)
{
    switch ((enum sluice_status)status) {
    case SLUICE_STATUS_SUCCESS:
        return SLUICE_CLASS_NONE;
    case SLUICE_STATUS_LOC_LEN_ERR:
    case SLUICE_STATUS_LOC_QP_OP_ERR:
        return opcode == SLUICE_OP_RECEIVE ? SLUICE_CLASS_TRUNCATED : SLUICE_CLASS_LOCAL;
    case SLUICE_STATUS_LOC_PROT_ERR:
    case SLUICE_STATUS_LOC_ACCESS_ERR:
        return SLUICE_CLASS_LOCAL;
    case SLUICE_STATUS_WR_FLUSH_ERR:
        return SLUICE_CLASS_CANCELLED;
    case SLUICE_STATUS_BAD_RESP_ERR:
        return SLUICE_CLASS_PROTOCOL;
    case SLUICE_STATUS_REM_INV_REQ_ERR:
    case SLUICE_STATUS_REM_OP_ERR:
        return opcode == SLUICE_OP_SEND ? SLUICE_CLASS_TRUNCATED : SLUICE_CLASS_ACCESS;
    case SLUICE_STATUS_REM_ACCESS_ERR:
        return SLUICE_CLASS_ACCESS;
    case SLUICE_STATUS_RETRY_EXC_ERR:
    case SLUICE_STATUS_PEER_CLOSED:
        return SLUICE_CLASS_PEER_LOST;
    case SLUICE_STATUS_RNR_RETRY_EXC_ERR:
    case SLUICE_STATUS_DEADLINE:
        return SLUICE_CLASS_TIMEOUT;
    case SLUICE_STATUS_FATAL_ERR:
    case SLUICE_STATUS_GENERAL_ERR:
        break;
    }
    return SLUICE_CLASS_DEVICE;
}
