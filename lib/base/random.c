/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/uncancelled.h"

int slu_random(void *bytes, size_t count)
{
    unsigned char *at = bytes;

    while (count > 0) {
        ssize_t got = SLU_UNCANCELLED(getrandom(at, count, 0));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return slu_fail(-slu_listed(-errno),
                            "no random bytes, which endpoints and keys need: getrandom(2): %s",
                            strerrordesc_np(errno));
        at += got;
        count -= (size_t)got;
    }
    return 0;
}
