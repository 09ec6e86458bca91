/* SPDX-License-Identifier: MIT */
/* Blocking calls with one peer of a multichannel. */
#include "config.h"

#include "multichannel/multichannel.h"
#include "scope/scope.h"

int sluice_multichannel_submit(struct sluice_multichannel *multichannel,
                               const struct sluice_request *requests, uint32_t count,
                               int64_t deadline, struct sluice_completion *completions)
{
    struct slu_source source = {.lists = {requests}, .counts = {count}, .count = count};

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    return slu_submit(multichannel->base.engine, &source, deadline, completions);
}

int sluice_multichannel_send(struct sluice_multichannel *multichannel, uint32_t peer,
                             const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline)
{
    return slu_channel_send(slu_engine_of_many(multichannel), peer, sges, sge_count, NULL,
                            deadline);
}

int sluice_multichannel_send_immediate(struct sluice_multichannel *multichannel, uint32_t peer,
                                       const struct sluice_sge *sges, uint32_t sge_count,
                                       uint32_t immediate, int64_t deadline)
{
    return slu_channel_send(slu_engine_of_many(multichannel), peer, sges, sge_count, &immediate,
                            deadline);
}

int sluice_multichannel_receive(struct sluice_multichannel *multichannel, uint32_t peer,
                                const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline,
                                struct sluice_completion *completion)
{
    return slu_channel_receive(slu_engine_of_many(multichannel), peer, sges, sge_count, deadline,
                               completion);
}

int sluice_multichannel_receive_any(struct sluice_multichannel *multichannel,
                                    const struct sluice_sge *sges, uint32_t sge_count,
                                    int64_t deadline, struct sluice_completion *completion)
{
    return slu_is_multichannel(multichannel)
               ? slu_pool_receive(multichannel->base.engine, sges, sge_count, deadline, completion)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_write(struct sluice_multichannel *multichannel, uint32_t peer,
                              const struct sluice_sge *sges, uint32_t sge_count,
                              const struct sluice_remote_mr *remote, int64_t deadline)
{
    return slu_channel_move(slu_engine_of_many(multichannel), SLUICE_OP_WRITE, peer, sges,
                            sge_count, remote, NULL, deadline);
}

int sluice_multichannel_write_immediate(struct sluice_multichannel *multichannel, uint32_t peer,
                                        const struct sluice_sge *sges, uint32_t sge_count,
                                        const struct sluice_remote_mr *remote, uint32_t immediate,
                                        int64_t deadline)
{
    return slu_channel_move(slu_engine_of_many(multichannel), SLUICE_OP_WRITE, peer, sges,
                            sge_count, remote, &immediate, deadline);
}

int sluice_multichannel_read(struct sluice_multichannel *multichannel, uint32_t peer,
                             const struct sluice_sge *sges, uint32_t sge_count,
                             const struct sluice_remote_mr *remote, int64_t deadline)
{
    return slu_channel_move(slu_engine_of_many(multichannel), SLUICE_OP_READ, peer, sges, sge_count,
                            remote, NULL, deadline);
}

struct sluice_scope *sluice_multichannel_scope_begin(struct sluice_multichannel *multichannel,
                                                     int64_t deadline)
{
    if (!slu_is_multichannel(multichannel))
        return slu_misuse_null(EINVAL, "not a multichannel%s", slu_none_hint(multichannel));
    return slu_scope_begin(multichannel->base.engine, deadline);
}
