/* SPDX-License-Identifier: MIT */
/*
 * The rings for large pieces, one in each direction: the writer makes one with its first large
 * message and gives it back when it is idle; the reader maps it.
 */
#include "transport/soft/helper/helper.h"
#include "transport/soft/shm/shm.h"

void slu_soft_shm_drop_bulk(struct soft_tcp *tcp)
{
    struct shm_writer *writer = &tcp->shm->writer;
    if (writer->bulk == NULL)
        return;
    slu_soft_shm_unmap(writer->bulk, SHM_BULK_BYTES);
    writer->bulk = NULL;
    slu_soft_tidy_end(slu_soft_context(tcp->qp));
}

/* Until the peer has mapped the ring, all data goes through the slots. */
void slu_soft_shm_offer_bulk(struct soft_tcp *tcp)
{
    struct shm_writer *writer = &tcp->shm->writer;
    void *map = NULL;
    if (tcp->shm->bulk_refused)
        return;
    int fd = slu_soft_shm_make(SHM_BULK_BYTES, SHM_READ_WRITE, &map);
    int err = fd;
    if (fd >= 0) {
        writer->bulk = map;
        slu_soft_tidy_begin(slu_soft_context(tcp->qp));
        writer->bulk_generation = writer->bulk_generation % (SHM_GENERATIONS - 1) + 1;
        writer->bulk_written = writer->bulk_taken = 0;
        err = slu_soft_shm_say(tcp, SHM_WORD_BULK, NULL, 0, fd);
        slu_fd_close(fd);
    }
    if (err >= 0)
        return;
    slu_soft_shm_drop_bulk(tcp);
    tcp->shm->bulk_refused = true;
    slu_log(SLUICE_LOG_INFO, "queue pair %u: no memory for large messages, which are slower: %s",
            tcp->qp->qpn, strerrordesc_np(-err));
}

bool slu_soft_shm_take_bulk(struct soft_tcp *tcp, int fd)
{
    struct shm_reader *reader = &tcp->shm->reader;
    if (reader->bulk != NULL) {
        slu_soft_shm_refuse(fd);
        return false;
    }
    reader->bulk = slu_soft_shm_map(fd, 0, SHM_BULK_BYTES, SHM_READ_WRITE);
    reader->bulk_taken = 0;
    reader->bulk_generation = reader->bulk_generation % (SHM_GENERATIONS - 1) + 1;
    if (reader->bulk == NULL) {
        slu_log(SLUICE_LOG_INFO, "queue pair %u: cannot map what the peer has for large messages",
                tcp->qp->qpn);
        return true;
    }
    atomic_store_explicit(&reader->segment->bulk_taken, 0, memory_order_relaxed);
    atomic_store_explicit(&reader->segment->bulk_ready, reader->bulk_generation,
                          memory_order_release);
    return true;
}

/*
 * Unmaps the peer's ring. All records in it were taken, unless the peer broke the protocol; then
 * the next one is found invalid.
 */
void slu_soft_shm_lose_bulk(struct soft_tcp *tcp)
{
    struct shm_reader *reader = &tcp->shm->reader;
    slu_soft_shm_unmap((void *)(uintptr_t)reader->bulk, SHM_BULK_BYTES);
    reader->bulk = NULL;
    atomic_store_explicit(&reader->segment->bulk_ready, 0, memory_order_relaxed);
}

/* Returns whether the ring can be dropped: it is idle, empty, and no frame is about to use it. */
static bool may_drop_bulk(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    bool used = shm->bulk_used;
    shm->bulk_used = false;
    return !used && tcp->phase == PHASE_OPEN && !tcp->blocked && tcp->out.part == TCP_PART_NONE &&
           (shm->writer.bulk_written == 0 ||
            slu_soft_shm_bulk_room(&shm->writer) == (int)SHM_BULK_BYTES);
}

void slu_soft_shm_tidy(struct soft_cq *cq)
{
    for (struct soft_tcp *tcp = cq->connections; tcp != NULL; tcp = tcp->all.next) {
        if (tcp->shared && tcp->shm->writer.bulk != NULL && may_drop_bulk(tcp) &&
            slu_soft_shm_say(tcp, SHM_WORD_NO_BULK, NULL, 0, -1) == 0)
            slu_soft_shm_drop_bulk(tcp);
    }
}
