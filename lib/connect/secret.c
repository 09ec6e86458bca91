/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "connect/proof.h"

static int check_file(int fd, const char *path)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return slu_fail(errno, "cannot check the secret %.128s: %s", path, strerrordesc_np(errno));
    if (!S_ISREG(status.st_mode))
        return slu_fail(EACCES, "the secret %.128s is not a regular file", path);
    /* A file of another user can be read and changed by that user. Root can do both anyway. */
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return slu_fail(EACCES,
                        "the secret %.128s belongs to user %u: it must belong to user %u, as whom "
                        "this process runs, or to root",
                        path, (unsigned)status.st_uid, (unsigned)geteuid());
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return slu_fail(EACCES,
                        "the secret %.128s has mode %04o: group and others must have no right "
                        "to it, as in 0600",
                        path, (unsigned)status.st_mode & 07777);
    if (status.st_size < SLU_SECRET_MIN || status.st_size > SLU_SECRET_MAX)
        return slu_fail(EINVAL, "the secret %.128s has %lld bytes, can have %d to %d", path,
                        (long long)status.st_size, SLU_SECRET_MIN, SLU_SECRET_MAX);
    return 0;
}

/* Reads one byte more than allowed, to notice a file that has grown. */
static int read_file(int fd, const char *path, struct slu_secret *secret)
{
    while (secret->count <= SLU_SECRET_MAX) {
        ssize_t got = read(fd, secret->bytes + secret->count, SLU_SECRET_MAX + 1 - secret->count);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return slu_fail(errno, "cannot read the secret %.128s: %s", path,
                            strerrordesc_np(errno));
        if (got == 0)
            break;
        secret->count += (size_t)got;
    }
    if (secret->count < SLU_SECRET_MIN || secret->count > SLU_SECRET_MAX)
        return slu_fail(EINVAL, "the secret %.128s changed while it was read", path);
    return 0;
}

int slu_secret_read(const char *path, struct slu_secret *secret)
{
    int fd, error;

    *secret = (struct slu_secret){0};
    if (path[0] == '\0')
        return 0;
    error = slu_proof_init();
    if (error < 0)
        return error;
    /* With O_NONBLOCK, opening a pipe does not wait for its other end. */
    fd = slu_fd_open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return slu_fail(errno == EACCES || errno == EPERM ? EACCES : EINVAL,
                        "cannot open the secret %.128s: %s%s", path, strerrordesc_np(errno),
                        errno == ENOENT && strncmp(path, "/proc/", 6) == 0
                            ? " (it is that of a process that has ended, or is not in the /proc "
                              "that this process sees)"
                            : "");
    error = check_file(fd, path);
    if (error == 0) {
        secret->bytes = calloc(1, SLU_SECRET_MAX + 1);
        error = secret->bytes == NULL ? slu_fail(ENOMEM, "no memory for the secret %.128s", path)
                                      : read_file(fd, path, secret);
    }
    close(fd);
    if (error < 0)
        slu_secret_forget(secret);
    return error;
}

int slu_secret_copy(const uint8_t *bytes, size_t count, struct slu_secret *secret)
{
    int error = slu_proof_init();

    *secret = (struct slu_secret){0};
    if (error < 0)
        return error;
    secret->bytes = calloc(1, SLU_SECRET_MAX + 1);
    if (secret->bytes == NULL)
        return slu_fail(ENOMEM, "no memory for a secret");
    memcpy(secret->bytes, bytes, count);
    secret->count = count;
    return 0;
}

void slu_secret_forget(struct slu_secret *secret)
{
    if (secret->bytes != NULL)
        slu_proof_forget(secret->bytes, SLU_SECRET_MAX + 1);
    free(secret->bytes);
    *secret = (struct slu_secret){0};
}
