/* SPDX-License-Identifier: MIT */
/* A scope whose peer is killed ends all the same, and reports which requests failed. */
#include "../support/group.h"
#include "../support/pair.h"

#define VICTIM 1
#define BYSTANDER 2
#define BIG ((size_t)1 << 18)

/* Rank 0 is in its block when a peer dies, and leaves it by a return. */
static void outlive_victim(struct rank *rank, struct mesh *mesh, struct memory *memory,
                           const struct sluice_remote_mr *remotes,
                           struct sluice_scope_report *report)
{
    struct sluice_sge in = memory_sge(memory, 0, BIG);
    struct sluice_sge out = memory_sge(memory, BIG, BIG);
    SLUICE_SCOPE(scope, sluice_multichannel_scope_begin(mesh->all, DEADLINE), report) {
        for (int i = 0; i < 4; i++) {
            require_ok(sluice_scope_post_receive(scope, VICTIM, &in, 1, NULL));
            require_ok(
                sluice_scope_post_write(scope, BYSTANDER, &out, 1, &remotes[BYSTANDER], NULL));
            if (i == 1) {
                rank_kill(rank, VICTIM);
            }
            require_ok(sluice_scope_post_write(scope, VICTIM, &out, 1, &remotes[VICTIM], NULL));
        }
        return;
    }
}

static void lose_a_peer(struct rank *rank)
{
    struct sluice_completion failures[12];
    struct sluice_scope_report report = {
        .size = sizeof(report), .failures = failures, .capacity = COUNT(failures)};
    struct sluice_remote_mr remotes[GROUP_MAX];
    struct memory memory;
    struct mesh mesh;
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, 2 * BIG);
    pattern_fill(memory.bytes + BIG, BIG, 7);
    mesh_share(rank, &memory, remotes);
    for (uint32_t i = 0; i < rank->size; i++) {
        remotes[i].length = BIG;
    }
    if (rank->index == VICTIM) {
        rank_await_death(rank);
    }
    if (rank->index == 0) {
        outlive_victim(rank, &mesh, &memory, remotes, &report);
        require_equal(report.error, -ECONNRESET, report.posted, 12);
        require(report.failed >= 4 && report.failed == report.count, "%u failed, %u listed",
                report.failed, report.count);
        for (uint32_t i = 0; i < report.count; i++) {
            require(failures[i].peer == VICTIM, "peer %u failed", failures[i].peer);
        }
        /* Late data of the dead peer would overwrite these bytes. */
        memset(memory.bytes, 0x55, BIG);
    }
    mesh_barrier(&mesh, rank);
    if (rank->index == 0) {
        value_check(memory.bytes, BIG, 0x55);
        require_ok(sluice_multichannel_send(mesh.all, BYSTANDER, NULL, 0, DEADLINE));
    } else {
        require_ok(sluice_multichannel_receive(mesh.all, 0, NULL, 0, DEADLINE, NULL));
        pattern_check(memory.bytes, BIG, 7);
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(peer_is_killed_in_a_scope)
{
    group_run(3, lose_a_peer, NULL, 40);
}

int main(void)
{
    const struct tests cases[] = {{"processes", WIRE_SHM, 60}};
    return run_groups("scope_killed", cases, COUNT(cases));
}
