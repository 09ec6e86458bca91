/* SPDX-License-Identifier: MIT */
/* The description of a gather, which all pieces and chunks have. */
#include "config.h"

#include "node/gather.h"

static const char *name_kind(uint64_t kind)
{
    if (kind == SLU_SHARE_MR)
        return "sluice_node_share_mr()";
    return kind == SLU_ALLTOALL ? "sluice_node_alltoall()" : "sluice_node_allgather()";
}

int slu_gather_fail_call(struct slu_gathering *gathering, uint32_t rank, uint64_t theirs)
{
    struct slu_group *group = &gathering->group;
    uint64_t kind = theirs >> 56;

    if (kind != SLU_ALLGATHER && kind != SLU_SHARE_MR && kind != SLU_ALLTOALL)
        return slu_abort_fail_invalid(group, rank, "call", theirs);
    group->disagreed = true;
    if (kind != gathering->kind)
        slu_fail(EPROTO, "rank %u is in %s, this rank in %s", rank, name_kind(kind),
                 name_kind(gathering->kind));
    else
        slu_fail(EPROTO, "rank %u gives %u byte%s to an %s, this rank %zu", rank, (uint32_t)theirs,
                 SLU_S((uint32_t)theirs), slu_group_name(group), gathering->bytes);
    return slu_abort_blame_rank(group, rank, SLU_ABORT_OTHER_CALL, -EPROTO);
}
