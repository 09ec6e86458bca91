/* SPDX-License-Identifier: MIT */
/* Results of the admissions that the program began without waiting, and their cancellation. */
#include "config.h"

#include <string.h>

#include "listener/admission.h"
#include "listener/rdmacm.h"

static int check(const struct sluice_listener *listener, int64_t timeout,
                 const struct sluice_admitted *admitted)
{
    int error;

    if (!slu_is_listener(listener))
        return slu_not_a_listener(listener);
    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    error = SLU_INFO_CHECK(sluice_admitted, admitted);
    if (error == 0 && admitted->peers == NULL && admitted->peer_capacity > 0)
        error = slu_misuse(EINVAL, "sluice_admitted.peers is NULL, with peer_capacity %u",
                           admitted->peer_capacity);
    return error;
}

static bool is_program(const struct slu_admission *admission)
{
    return admission->owner == SLU_OF_PROGRAM;
}

static uint32_t count_under_way(const struct sluice_listener *listener)
{
    const struct slu_admission *admission = TAILQ_FIRST(&listener->under_way);
    uint32_t count = 0;

    for (; admission != NULL; admission = TAILQ_NEXT(admission, link))
        count += is_program(admission);
    return count;
}

/* Waits for a finished admission. Returns NULL with a text and errno if there is none. */
static struct slu_admission *await_finished(struct sluice_listener *listener, int64_t until)
{
    struct slu_admission *admission;

    slu_listener_progress(listener, 0);
    while ((admission = slu_admissions_finished(listener, SLU_OF_PROGRAM)) == NULL) {
        if (slu_listener_was_woken(listener))
            return slu_fail_null(EINTR, "the wait was ended by a wake; nothing was lost");
        if (slu_is_late(until))
            return slu_fail_null(ETIMEDOUT, "no admission is finished; %u are under way",
                                 count_under_way(listener));
        if (listener->fresh == NULL || !slu_admission_spin(listener->fresh))
            slu_listener_progress(listener, until);
    }
    return admission;
}

/* Fails if the program has removed a connected peer before it took the result. */
static int check_peers(struct slu_joint *joint)
{
    for (uint32_t i = 0; i < joint->added; i++) {
        int error = slu_joint_check_peer(joint, i);

        if (error < 0) {
            slu_joint_undo(joint);
            return error;
        }
    }
    return 0;
}

/* Reports the result of an admission, and hands the connected channel or peers to the program. */
static void take(struct slu_admission *admission, struct sluice_admitted *admitted)
{
    struct slu_joint *joint = &admission->joint;
    int error = admission->error < 0 ? slu_fail(-admission->error, "%s", admission->text)
                                     : check_peers(joint);
    struct sluice_admitted known = {.size = sizeof known,
                                    .error = error,
                                    .user_data = admission->user_data,
                                    .peers = admitted->peers,
                                    .peer_capacity = admitted->peer_capacity};

    memcpy(known.address, admission->passage.who, sizeof known.address);
    if (error == 0) {
        known.channel = joint->channel;
        known.multichannel = joint->multichannel;
        known.peer_count = joint->added;
        known.peer = joint->peers[0];
        for (uint32_t i = 0; i < joint->added && i < known.peer_capacity; i++)
            known.peers[i] = joint->peers[i];
    }
    slu_admission_free(admission);
    slu_info_copy(admitted, &known, sizeof known);
}

int sluice_listener_admitted(struct sluice_listener *listener, int64_t timeout,
                             struct sluice_admitted *admitted)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_admission *admission;
    int error = check(listener, timeout, admitted);

    if (error < 0)
        return error;
    admission = await_finished(listener, slu_after(timeout));
    error = admission != NULL ? 0 : -errno;
    if (admission != NULL)
        take(admission, admitted);
    slu_listener_leave(listener);
    return error;
}

int sluice_listener_cancel(struct sluice_listener *listener, uint64_t user_data)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_admission *admission;
    int count = 0;

    if (!slu_is_listener(listener))
        return slu_not_a_listener(listener);
    for (admission = TAILQ_FIRST(&listener->under_way); admission != NULL;
         admission = TAILQ_NEXT(admission, link)) {
        if (!is_program(admission) || admission->user_data != user_data || admission->cancelled)
            continue;
        admission->cancelled = true;
        slu_admissions_event(listener, admission->slot);
        count++;
    }
    slu_admissions_step(listener);
    slu_listener_leave(listener);
    return count;
}
