/* SPDX-License-Identifier: MIT */
/*
 * Acknowledgements and credit as words in shared memory instead of frames; reading the peer's
 * words; and, once at the end of a turn, waking peers that sleep.
 */
#include "transport/soft/shm/shm.h"

void slu_soft_shm_say_words(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    if (!tcp->due)
        return;
    tcp->acked_out = slu_soft_tcp_complete(tcp);
    tcp->credit_out = tcp->qp->receives.posted;
    tcp->due = tcp->hasty = false;
    if (slu_soft_shm_tell_words(&shm->reader, slu_soft_shm_words(tcp->acked_out, tcp->credit_out)))
        shm->published |= SHM_ARMED_WORDS;
}

/* Uses one fence for everything that a turn has published, if it has published anything. */
void slu_soft_shm_settle(struct soft_cq *cq)
{
    struct soft_tcp *tcp;
    unsigned published = 0;
    for (tcp = cq->unsettled; tcp != NULL; tcp = tcp->owes.next) {
        slu_soft_shm_say_words(tcp);
        if (SLU_UNLIKELY(tcp->shm->touching))
            slu_soft_shm_end_touching(tcp->shm);
        published |= tcp->shm->published;
    }
    if (published != 0)
        slu_soft_shm_fence();
    while ((tcp = cq->unsettled) != NULL) {
        slu_soft_tcp_leave_owing(tcp);
        if (slu_soft_shm_wakes_peer(&tcp->shm->writer, tcp->shm->published))
            slu_soft_shm_ring_bell(tcp);
        tcp->shm->published = 0;
    }
}

/*
 * Called once the records are taken, which may include the replies to requests that the words
 * complete.
 */
bool slu_soft_shm_take_words(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    uint32_t before = (uint32_t)(shm->writer.words >> 32);
    if (slu_soft_shm_hear_words(&shm->writer)) {
        uint32_t done = (uint32_t)shm->writer.words;
        uint32_t credit = (uint32_t)(shm->writer.words >> 32);
        if ((int32_t)(done - shm->done) < 0 || (int32_t)(credit - before) < 0) {
            return slu_soft_tcp_reject(tcp, "its words take back what they told");
        }
        shm->done = done;
        shm->fresh = true;
        tcp->moved |= SLU_MOVED_IN;
        if (!slu_soft_tcp_accept_credit(tcp, credit))
            return false;
    }
    return slu_soft_tcp_accept_done(tcp, shm->done);
}
