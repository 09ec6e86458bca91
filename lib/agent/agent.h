/* SPDX-License-Identifier: MIT */
/*
 * An agent and its peers. One lock protects all of it, including every channel. The lock is
 * given up while a thread sleeps, and for work that takes long: allocating memory, accepting
 * peers, and connecting.
 *
 * A file calls only files before it in this list. Two functions go the other way (seam.h): control
 * messages that arrive are handled far above control.c, and any file can find that a peer is lost.
 *
 *   message          wire format of control messages; depends on nothing else here
 *   events           the epoll set, due times, and threads that sleep
 *   object           agents and peers as objects: checks, references, lists of peers
 *   memory           memory that is reused: spares, and staging memory of long messages
 *   shared           control queue pairs that share a completion queue, or receives
 *   control          the control queue pair: slots, posted receives, credit
 *   requests         requests of ours that wait for their answers
 *   regions          memory of ours that peers use: quota, leases, revocation
 *   remote_regions   memory of peers that this agent holds
 *   data             the data queue pair, posting to it, and resetting it
 *   messages         messages that wait for the program
 *   long_receive     long messages, which are read in the background
 *   control_receive  handling each control message of a peer
 *   peer             peers: setup, progress and loss
 *   accept           accepting peers from the listener
 *   progress         the progress loop, and waiting
 *   helper           the thread that serves peers while the program is elsewhere
 *   request_wait     sending a request and waiting for its answer
 *
 * The calls of the program are in agent (the agent itself), connect (peers), inbox (messages),
 * lease (memory of peers), transfer (reads, writes and atomics) and handover (memory of the
 * program, which is handed to a peer and comes back).
 */
#ifndef SLU_AGENT_H
#define SLU_AGENT_H

#include "agent/seam.h"
#include "agent/state.h"

/* events.c: all with the lock. */
/* Wakes an event loop of an agent that has a thread. */
void slu_agent_wake_loop(const struct sluice_agent *agent);
/* Likewise, once, if the loop sleeps and there is something for the program. */
void slu_agent_notify_loop(struct sluice_agent *agent);
/* Opens the descriptors of a new agent. Returns 0, or -EMFILE or -ENOMEM. */
int slu_agent_events_open(struct sluice_agent *agent);
int slu_agent_watch_listener(struct sluice_agent *agent);
void slu_agent_watch_listener_again(struct sluice_agent *agent); /* after each of its events */
/* Adds the channels of a new peer to the epoll set. */
int slu_agent_watch_peer(struct sluice_agent *agent, struct sluice_agent_peer *peer);
void slu_agent_unwatch_peer(struct sluice_agent_peer *peer);
/* Adds the multichannel of the peers' control queue pairs to the epoll set. */
int slu_agent_watch_shared(const struct sluice_agent *agent);
/* Sets whether the agent's epoll set reports the peer's data queue pair. */
void slu_agent_watch_data(struct sluice_agent_peer *peer, bool on);
/*
 * Returns whether the data queue pair must be polled and armed. It is not while idle: that poll
 * is a system call, which takes longer than a short message, and the peer's accesses to our
 * memory, which the transport serves, need not wake a thread. While the peer reads a long
 * message, polling serves it faster.
 */
bool slu_agent_uses_data(const struct sluice_agent_peer *peer);
/*
 * Returns whether to poll it now. With keepalive alone it was armed, and stays so until its event
 * or its time comes: messages on the control queue pair need no system calls for it.
 */
bool slu_agent_must_poll_data(const struct sluice_agent_peer *peer);
/* Sets the time at which all peers are served, unless an earlier one is set. */
void slu_agent_due(struct sluice_agent *agent, int64_t when);
/* Marks the channels of a peer as used, so that they are armed before the next sleep. */
void slu_agent_unarm(struct sluice_agent_peer *peer);
/* Likewise, after the data queue pair was used. */
void slu_agent_unarm_data(struct sluice_agent_peer *peer);
/* Likewise, and marks the peer to be served. */
void slu_agent_touch(struct sluice_agent_peer *peer);
/* Wakes the threads that wait for a change. */
void slu_agent_notify(struct sluice_agent *agent);
/* Lets receives from any peer check for a message that may be read now. */
void slu_agent_notify_room(struct sluice_agent *agent);
/* Wakes the thread that sleeps on the epoll set; callable from any thread. */
void slu_agent_wake_sleeper(const struct sluice_agent *agent);
/* Arms all peers and sets *due to when to serve next. Returns 1 if one has work already. */
int slu_agent_arm_all(struct sluice_agent *agent, int64_t *due);
/* Wakes a parked helper when a call gives up the lock: it checks whether it is needed. */
void slu_agent_unpark_helper(struct sluice_agent *agent);
/* Returns whether the helper will poll by itself, so that nothing must be armed for it. */
bool slu_agent_helper_polls(struct sluice_agent *agent);
/* Call before giving up the lock: arms what the caller used, so that no sleeper misses events. */
void slu_agent_arm_for_sleeper(struct sluice_agent *agent);
/* Polls the epoll set; unless until is 0, gives up the lock and sleeps there until then. */
void slu_agent_poll_set(struct sluice_agent *agent, int64_t until);
/* Spins one step of a wait that began at *begun. Returns false when it is time to sleep. */
bool slu_agent_spin(struct sluice_agent *agent, int64_t *begun, int64_t now);
/* Sleeps until an event, a due time, or until; on the condition if the set has a sleeper. */
void slu_agent_sleep(struct sluice_agent *agent, int64_t until);

/* object.c */
bool slu_is_agent(const struct sluice_agent *agent);
int slu_not_an_agent(const struct sluice_agent *agent);
bool slu_is_agent_peer(const struct sluice_agent_peer *peer);
int slu_not_an_agent_peer(const struct sluice_agent_peer *peer);
/* Bracket each call: take the lock and a reference. The last reference frees the agent. */
void slu_agent_enter(struct sluice_agent *agent);
void slu_agent_leave(struct sluice_agent *agent);
void slu_agent_free(struct sluice_agent *agent);
int slu_agent_check_time(int64_t time, const char *what);
/* Checks the arguments of a call that receives from one peer, or from any (NULL). */
int slu_agent_check_receive(const struct sluice_agent *agent, const struct sluice_agent_peer *peer,
                            int64_t timeout);
void slu_agent_peer_hold(struct sluice_agent_peer *peer);
void slu_agent_peer_drop(struct sluice_agent_peer *peer);
/* Returns 0, -ENOTCONN with the reason, or -ECANCELED if the agent is closed. */
int slu_agent_peer_check(const struct sluice_agent_peer *peer);
/* Sets the peer's address in words, and whether it maps our memory. */
void slu_agent_peer_locate(struct sluice_agent_peer *peer);
/* List the peer as one with messages, or take it off that list. */
void slu_agent_peer_set_readable(struct sluice_agent_peer *peer);
void slu_agent_peer_clear_readable(struct sluice_agent_peer *peer);
/* Moves a peer behind the others that have messages. */
void slu_agent_end_turn(struct sluice_agent_peer *peer);
/* Returns whether all places for peers are taken, or promised to peers that are connecting. */
bool slu_agent_is_full(const struct sluice_agent *agent);
/* Returns whether unread messages of lost peers take as much as max_left_bytes allows. */
bool slu_agent_left_is_full(const struct sluice_agent *agent);
/* Counts and logs a message of the peer that is refused; drops the peer after many. */
void slu_agent_refuse(struct sluice_agent_peer *peer, uint64_t *counter, const char *what);
/* Count pages of allocated memory against the quota of a peer, and take them off it. */
void slu_agent_take_quota(struct sluice_agent_peer *peer, uint64_t pages);
void slu_agent_give_quota(struct sluice_agent_peer *peer, uint64_t pages);
/* Lists the peer as one with returned regions, or takes it off that list. */
void slu_agent_list_returning(struct sluice_agent_peer *peer);
/* Frees a returned region and takes it off the quota. */
void slu_agent_end_returned(struct sluice_agent_peer *peer, struct slu_agent_returned *returned);

/* memory.c */
/* Keeps memory of a long message or a control queue pair for reuse, or releases it. */
void slu_agent_keep_spare(struct sluice_agent *agent, struct sluice_mr *mr);
/* Returns spare memory of length to most bytes, at most 4 times length; or NULL. */
struct sluice_mr *slu_agent_take_spare(struct sluice_agent *agent, uint64_t length, uint64_t most);
void slu_agent_end_spares(struct sluice_agent *agent);
/* Returns a copy of a message that the peer may read; NULL and errno. Without the lock. */
struct sluice_mr *slu_agent_stage(struct sluice_agent_peer *peer, const void *bytes, size_t length);
/* Keeps the copy's memory for the next message: the peer has read it. With the lock. */
void slu_agent_unstage(struct sluice_agent_peer *peer, struct sluice_mr *mr);
/* Releases the memory that is kept. With the lock, once the peer is over. */
void slu_agent_end_staging(struct sluice_agent_peer *peer);

/* Returns the bytes of a slot, which holds the longest message. */
static inline uint32_t slu_agent_slot_bytes(const struct sluice_agent *agent)
{
    uint32_t eager = agent->attr.eager;

    return (SLU_AGENT_HEAD + (eager > SLU_AGENT_MOST_BODY ? eager : SLU_AGENT_MOST_BODY) + 7) &
           ~UINT32_C(7);
}

/* shared.c: all with the lock. */
/* Opens what the peers share: on soft, and if the agent has receive_pool and the device can. */
int slu_agent_shared_open(struct sluice_agent *agent);
/* Returns whether the peer's messages take receives of the agent's pool. */
static inline bool slu_agent_is_pooled(const struct sluice_agent_peer *peer)
{
    return peer->shares && peer->agent->shared.slab != NULL;
}
void slu_agent_shared_close(struct sluice_agent *agent);
/* Makes a multichannel for data queue pairs. Returns NULL on an error. */
struct sluice_multichannel *slu_agent_make_data(struct sluice_agent *agent);
/* Adds a peer by its index, and gives it the messages that came before it was one. */
int slu_agent_shared_join(struct sluice_agent_peer *peer);
/* Removes the peer from the multichannel, and gives back the receives that it had. */
void slu_agent_shared_leave(struct sluice_agent_peer *peer);
/* Removes a connection that becomes no peer. */
void slu_agent_shared_drop(struct sluice_agent *agent, uint32_t index);
/* Polls; the peers for which something came are marked to be served. Returns whether any was. */
bool slu_agent_shared_poll(struct sluice_agent *agent);
/* Returns the bytes of a message that is not handled yet. */
uint8_t *slu_agent_pending_bytes(const struct sluice_agent_peer *peer, uint32_t at);
/* Ends the use of the bytes of a message that was handled. */
void slu_agent_shared_give_back(struct sluice_agent *agent, uint32_t slot, uint8_t *copy);
/* Posts the receives again whose messages were handled. */
void slu_agent_shared_refill(struct sluice_agent *agent);
/* Copies messages that cannot be handled yet, so that they keep no receives from other peers. */
void slu_agent_shared_copy_out(struct sluice_agent_peer *peer);
/*
 * Bracket a wait for the completion of sends of control queue pairs. Outside of such waits, these
 * wake no thread that sleeps: the next message brings them.
 */
void slu_agent_begin_send_wait(struct sluice_agent *agent);
void slu_agent_end_send_wait(struct sluice_agent *agent);
bool slu_agent_is_flushed(void *peer);
/* Call after the number of free send slots of a peer has changed, or flushing. */
void slu_agent_count_sends(struct sluice_agent_peer *peer);
/* Notes a completion of the control queue pair. */
void slu_agent_take(struct sluice_agent_peer *peer, const struct sluice_completion *done);

/* control.c */
/* Closes a connection that becomes no peer: the channel, or the peer of the multichannel. */
void slu_agent_control_end(struct sluice_agent *agent, struct sluice_channel *control,
                           uint32_t index);
int slu_agent_control_open(struct sluice_agent_peer *peer);
void slu_agent_control_close(struct sluice_agent_peer *peer);
/* Polls and handles messages. Returns whether there were completions. */
bool slu_agent_control_poll(struct sluice_agent_peer *peer);
/* Sends what is due: queued answers, hello, resets, credit, heartbeats, the goodbye. */
void slu_agent_control_flush(struct sluice_agent_peer *peer);
/* Returns whether the peer's window and our send slots have room for one more request. */
bool slu_agent_may_request(const struct sluice_agent_peer *peer);
/* Returns whether the peer's program has room for one more waiting message of bytes. */
bool slu_agent_may_post(const struct sluice_agent_peer *peer, uint64_t bytes);
/* Sends a message; the caller has checked for a free slot. bytes: the body of a TEXT. */
void slu_agent_control_send(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                            const void *bytes);
void slu_agent_answer(struct sluice_agent_peer *peer, uint64_t id, uint32_t code,
                      const char *words);
/* Queues an answer and sends it as soon as there is a free slot. */
void slu_agent_queue_answer(struct sluice_agent_peer *peer, uint64_t id, uint32_t code);
bool slu_agent_is_counted(uint32_t type);
/* Counts a message that will wait for our program. Returns false, and refuses it, if full. */
bool slu_agent_count_arrival(struct sluice_agent_peer *peer, uint64_t bytes);
void slu_agent_received(struct sluice_agent_peer *peer, uint64_t bytes);

/* requests.c */
/* Sends a request whose answer no caller waits for. Returns false if there is no room. */
bool slu_agent_request_detached(struct sluice_agent_peer *peer, struct slu_agent_message *message);
/* Returns the entry of a request; with id 0, one that is free; or NULL. */
struct slu_agent_wait *slu_agent_find_wait(struct sluice_agent_peer *peer, uint64_t id);
/* Sends WITHDRAW for an announced message. Returns false if there is no room. */
bool slu_agent_withdraw(struct sluice_agent_peer *peer, const struct slu_agent_wait *wait);
void slu_agent_wait_end(struct slu_agent_wait *wait);
void slu_agent_handle_answer(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message);
/* Sends what abandoned requests still need: WITHDRAW, and RELEASE of late regions. */
void slu_agent_clean_waits(struct sluice_agent_peer *peer);
void slu_agent_fail_waits(struct sluice_agent_peer *peer);

/* regions.c */
void slu_agent_handle_alloc(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
void slu_agent_handle_release(struct sluice_agent_peer *peer,
                              const struct slu_agent_message *message);
void slu_agent_handle_return(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message);
void slu_agent_handle_renew(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
struct slu_agent_region *slu_agent_find_region(struct sluice_agent_peer *peer, uint64_t id);
uint32_t slu_agent_registered_access(uint32_t access);
/* Adds a region to the peer's, with a new id. */
void slu_agent_add_region(struct sluice_agent_peer *peer, struct slu_agent_region *region);
/* Begins a lease of that length now; SLUICE_FOREVER: without an end. */
void slu_agent_lend(struct sluice_agent_peer *peer, struct slu_agent_region *region, int64_t lease);
void slu_agent_end_region(struct sluice_agent_peer *peer, struct slu_agent_region *region,
                          bool by_lease);
/* Ends a region and sends REVOKE as soon as the window allows. */
void slu_agent_revoke(struct sluice_agent_peer *peer, struct slu_agent_region *region);
void slu_agent_notify_revoked(struct sluice_agent_peer *peer);
/* Runs jobs, giving up the lock, and answers those that are done. Returns whether any was. */
bool slu_agent_run_jobs(struct sluice_agent_peer *peer);
/* Ends regions whose lease and grace are over, and sets the time of the next. */
void slu_agent_expire(struct sluice_agent_peer *peer);
void slu_agent_end_regions(struct sluice_agent_peer *peer);
/* Logs a peer's use of a region that had ended, which failed its data queue pair. */
void slu_agent_log_late_use(struct sluice_agent_peer *peer,
                            const struct sluice_remote_mr *failed_remote);

/* remote_regions.c */
bool slu_is_agent_mr(const struct sluice_agent_mr *mr);
int slu_not_an_agent_mr(const struct sluice_agent_mr *mr);
/* Makes a region of the peer, in no list. Returns NULL with a text: ENOMEM. */
struct sluice_agent_mr *slu_agent_mr_make(struct sluice_agent_peer *peer);
void slu_agent_mr_free(struct sluice_agent_mr *mr);
/* Lists the peer last among those with offered regions, or takes it off that list. */
void slu_agent_list_offering(struct sluice_agent_peer *peer);
void slu_agent_handle_hand(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
void slu_agent_handle_revoke(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message);
void slu_agent_end_held(struct sluice_agent_peer *peer);
/* Sends RELEASE for unwanted regions, as many as there is room for. */
void slu_agent_clean_held(struct sluice_agent_peer *peer);
/* Returns what is left of a lease; 0 if it is over. */
int64_t slu_agent_lease_left(const struct sluice_agent_mr *mr);

/* data.c */
/* Polls the multichannel of all data queue pairs; peers that completed something are unarmed. */
void slu_agent_shared_data_poll(struct sluice_agent *agent);
int slu_agent_data_open(struct sluice_agent_peer *peer);
void slu_agent_data_close(struct sluice_agent_peer *peer);
void slu_agent_handle_reset(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
void slu_agent_handle_ready(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
/* Connects our end to the peer's endpoint. */
void slu_agent_data_connect(struct sluice_agent_peer *peer, const struct sluice_endpoint *remote);
/* Resets the queue pair if it is ready, which ends all requests in flight; returns whether. */
bool slu_agent_data_end(struct sluice_agent_peer *peer);
/* Polls without serving anything else. Returns whether there were completions. */
bool slu_agent_data_poll(struct sluice_agent_peer *peer);
bool slu_agent_data_failed(const struct sluice_agent_peer *peer);
/* Resets the queue pair if it has failed. Returns whether it did. */
bool slu_agent_data_progress(struct sluice_agent_peer *peer);
/* Returns 1 if posted, and ended() will be called; 0 if not possible now; or an error. */
int slu_agent_post(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                   struct sluice_request *request, int64_t until);
/* Writes the text of a failed completion, and leaves the caller's last error alone. */
void slu_agent_explain(struct sluice_agent_peer *peer, const struct sluice_completion *completion,
                       char *text, size_t size);

/* messages.c */
void slu_agent_handle_message(struct sluice_agent_peer *peer,
                              const struct slu_agent_message *message);
void slu_agent_handle_announce(struct sluice_agent_peer *peer,
                               const struct slu_agent_message *message);
/* Returns the memory of the peer's waiting messages, in bytes. */
uint64_t slu_agent_count_messages(const struct sluice_agent_peer *peer);
/* Frees a message that is in no list and has nothing in flight. */
void slu_agent_free_message(struct sluice_agent_message *message);
void slu_agent_remove_message(struct sluice_agent_peer *peer, struct sluice_agent_message *message);
/* Takes a message out of the bytes that are read for receives from any peer. */
void slu_agent_unreserve(struct sluice_agent_message *message);

/* long_receive.c */
void slu_agent_handle_withdraw(struct sluice_agent_peer *peer,
                               const struct slu_agent_message *message);
/* Drops announced messages, which can no longer be read; with all, complete ones as well. */
void slu_agent_end_messages(struct sluice_agent_peer *peer, bool all);
/* Returns whether a message is not being read, and no earlier one of its peer is in flight. */
bool slu_agent_can_begin(const struct sluice_agent_message *message);
/* Returns whether a receive from any peer may begin to read the message. */
bool slu_agent_may_read(const struct sluice_agent_message *message);
/*
 * Begins to read a message; gives up the lock to allocate. On an error the message stays. If a
 * receive from any peer cannot begin, the message is tried again after a pause, and the error is
 * returned once only: the event loop that gets it goes on with other messages.
 */
int slu_agent_read(struct sluice_agent_message *message, bool of_any);
/* Posts further pieces and ends what is complete. Returns whether anything ended. */
bool slu_agent_continue_reads(struct sluice_agent_peer *peer);
/* Frees a message that is in no list, now or once nothing of it is in flight. */
void slu_agent_drop_message(struct sluice_agent_message *message);
/* Sets a deadline for the pieces in flight, whatever they were posted with. */
void slu_agent_limit_read(struct sluice_agent_message *message);
bool slu_agent_end_dropped(struct sluice_agent_peer *peer);

/* peer.c */
/*
 * Makes a peer and gives it the control channel or, if that is NULL, the peer of the shared
 * multichannel with this index. On an error closes or removes that, and returns NULL.
 */
struct sluice_agent_peer *slu_agent_peer_make(struct sluice_agent *agent,
                                              struct sluice_channel *control, uint32_t index,
                                              bool came);
bool slu_agent_peer_progress(struct sluice_agent_peer *peer);

/* accept.c */
/* Sets the decisions of the door about peers. */
void slu_agent_door_init(struct slu_door *door);
void slu_agent_accept(struct sluice_agent *agent);

/* progress.c: all with the lock. */
/* Serves the peers that need it. Returns whether anything happened. */
bool slu_agent_progress(struct sluice_agent *agent);
/*
 * Serves one peer and no other, which is enough for most calls. Returns false if the others have
 * not been polled for a while, so that all must be served.
 */
bool slu_agent_serve_one(struct sluice_agent_peer *peer);
/*
 * Returns whether messages of the last polls wait for the program, and these polls are recent.
 * Calls that need no more than these brought do not poll again: it costs a system call over TCP.
 */
bool slu_agent_is_in_batch(const struct sluice_agent *agent);
/*
 * Polls for messages of a peer. Returns whether there was none and nothing else is to be done, also
 * for other peers; if not, serve them.
 */
bool slu_agent_is_quiet(struct sluice_agent_peer *peer);
/*
 * Makes progress until ready() returns true. Returns 0; -ETIMEDOUT without a text; or, with one,
 * -ECANCELED, or -EINTR if wakes is set and the program called sluice_agent_wake().
 */
int slu_agent_await(struct sluice_agent *agent, bool (*ready)(void *argument), void *argument,
                    int64_t until, bool wakes);

/* helper.c */
int slu_agent_start_helper(struct sluice_agent *agent);

/* request_wait.c */
/* Sends a request once there is room. On 0, *wait is the caller's until slu_agent_wait_end(). */
int slu_agent_request(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                      int64_t until, struct slu_agent_wait **wait);
/* Waits for the answer. On a timeout or wake the request is abandoned and ends by itself. */
int slu_agent_wait_for(struct sluice_agent_peer *peer, struct slu_agent_wait *wait, int64_t until);
/* Does both, for requests that are answered by DONE. */
int slu_agent_request_and_wait(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                               int64_t until);

#endif
