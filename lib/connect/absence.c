/* SPDX-License-Identifier: MIT */
/* Judges from what the attempts of a meeting have met whether its peer is lost, and why. */
#include "config.h"

#include "base/clock.h"
#include "connect/meeting.h"

#include <errno.h>

/* How long a peer that was never reached may be absent, or away, before it is lost. */
#define ABSENT_TIME SLUICE_S(5)
#define AWAY_TIME SLUICE_S(60)

static bool has_guest(const struct slu_meeting *meeting)
{
    for (uint32_t i = 0; i < SLU_MEETING_GUESTS; i++)
        if (meeting->guests[i].talk.fd >= 0)
            return true;
    return false;
}

static void note_time(int64_t *since, bool on, int64_t now)
{
    if (!on)
        *since = 0;
    else if (*since == 0)
        *since = now;
}

static bool has_passed(int64_t since, int64_t time, int64_t now, int64_t *next)
{
    if (since == 0)
        return false;
    if (now - since < time && since + time < *next)
        *next = since + time;
    return now - since >= time;
}

bool slu_meeting_is_lost(struct slu_meeting *meeting, int64_t now, int64_t *next)
{
    bool refused = meeting->attempt_count > 0, absent = !refused;
    bool unsure = has_guest(meeting), unreached = false;

    for (uint32_t i = 0; i < meeting->attempt_count; i++) {
        const struct slu_attempt *attempt = &meeting->attempts[i];
        enum slu_outcome outcome = attempt->outcome;

        /* An address that is being dialed again refused earlier, and the peer may have come. */
        refused &= outcome == SLU_OUTCOME_REFUSED && attempt->state == SLU_ATTEMPT_NONE;
        absent |= outcome == SLU_OUTCOME_REFUSED || outcome == SLU_OUTCOME_HUNG_UP;
        unreached |= outcome == SLU_OUTCOME_AWAY;
        unsure |= outcome == SLU_OUTCOME_NONE || outcome == SLU_OUTCOME_UNSURE ||
                  attempt->state == SLU_ATTEMPT_STANDING;
    }
    note_time(&meeting->absent_since, absent && !unreached && !unsure, now);
    note_time(&meeting->away_since, !unsure, now);
    if (refused && !unsure && (meeting->near || meeting->reached))
        return true;
    return has_passed(meeting->absent_since, ABSENT_TIME, now, next) ||
           has_passed(meeting->away_since, AWAY_TIME, now, next);
}

const char *slu_shortage_text(int error)
{
    if (error == EMFILE)
        return "this process had no file descriptor left for a connection: raise ulimit -n";
    if (error == ENFILE)
        return "this host had no file left for a connection: raise fs.file-max of sysctl(8)";
    return "this process had no memory for a connection";
}

const char *slu_meeting_obstacle(const struct slu_meeting *meeting)
{
    bool away = meeting->attempt_count > 0, no_route = away;

    for (uint32_t i = 0; i < meeting->attempt_count; i++) {
        enum slu_outcome outcome = meeting->attempts[i].outcome;

        no_route &= outcome == SLU_OUTCOME_NO_ROUTE;
        away &= outcome == SLU_OUTCOME_NO_ROUTE || outcome == SLU_OUTCOME_AWAY;
    }
    if (meeting->starved != 0)
        return slu_shortage_text(meeting->starved);
    if (meeting->reached || has_guest(meeting) || !away)
        return NULL;
    if (meeting->near)
        return "the system refuses to connect to the Unix socket of the peer";
    return no_route ? "this host has no route to any address of the peer: see whether the network "
                      "interfaces are up, also lo"
                    : "no address of the peer can be reached: see whether its host is up, and "
                      "whether a firewall is between";
}
