/* SPDX-License-Identifier: MIT */
/* Parts of error texts of the exchange over TCP. */
#include "config.h"

#include <stdio.h>

#include "exchange/tcp.h"

const char *slu_tcp_means(uint32_t means)
{
    return means == TCP_MEANS_MUNGE    ? "munge (see SLUICE_MUNGE)"
           : means == SLU_MEANS_SECRET ? "a secret"
                                       : "none";
}

const char *slu_tcp_root_text(const struct tcp *tcp, char text[TCP_ROOT_TEXT])
{
    snprintf(text, TCP_ROOT_TEXT, "%.100s%s%s", tcp->root, tcp->root_source != NULL ? ", of " : "",
             tcp->root_source != NULL ? tcp->root_source : "");
    return text;
}
