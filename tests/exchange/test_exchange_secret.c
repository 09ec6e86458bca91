/* SPDX-License-Identifier: MIT */
/*
 * Secrets of an exchange over TCP: a process without the secret is not let in, whatever it has
 * recorded, and the ranks go on; and the rules for a file with a secret.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/process.h"
#include "liar.h"

static void call(struct party *party)
{
    party_calls(party, 320);
}

static void write_secret(char path[40], const char *text, mode_t mode)
{
    strcpy(path, "/tmp/sluice-secret-XXXXXX");
    int fd = mkstemp(path);
    require(fd >= 0, "%m");
    require(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%m");
    require(fchmod(fd, mode) == 0, "%m");
    close(fd);
}

#define BY_ATTR " sluice_exchange_attr.secret_file"

TEST(d3_files_of_secrets)
{
    static const struct {
        const char *text;
        mode_t mode;
        int error;
        const char *words;
    } files[] = {{"sixteen bytes it", 0600, 0, ""},
                 {"sixteen bytes it", 0400, 0, ""},
                 {"fifteen bytes..", 0600, EINVAL, "15 bytes, can have 16 to 4096" BY_ATTR},
                 {"sixteen bytes it", 0640, EACCES, "mode 0640" BY_ATTR},
                 {"sixteen bytes it", 0602, EACCES, "mode 0602" BY_ATTR}};
    struct parties parties;
    char path[40];
    for (size_t i = 0; i < COUNT(files); i++) {
        write_secret(path, files[i].text, files[i].mode);
        parties_make(&parties, 1, LONG);
        parties.party[0].attr.secret_file = path;
        parties_run(&parties, NULL);
        unlink(path);
        party_require(&parties.party[0], -files[i].error, files[i].words);
    }
    parties.party[0].attr.secret_file = "/tmp";
    parties_run(&parties, NULL);
    party_require(&parties.party[0], -EACCES, "regular file" BY_ATTR);
    /* No process writes to the FIFO. */
    snprintf(path, sizeof(path), "/tmp/sluice-secret-%d", getpid());
    require(mkfifo(path, 0600) == 0, "%s: %s", path, strerror(errno));
    parties.party[0].attr.secret_file = path;
    parties_run(&parties, NULL);
    unlink(path);
    party_require(&parties.party[0], -EACCES, "regular file" BY_ATTR);
    parties.party[0].attr.secret_file = "/nowhere/secret";
    parties_run(&parties, NULL);
    party_require(&parties.party[0], -EINVAL, "cannot open" BY_ATTR);
    parties.party[0].attr.secret_file = NULL;
    setenv("SLUICE_SECRET_FILE", "/nowhere/secret", 1);
    parties_run(&parties, NULL);
    unsetenv("SLUICE_SECRET_FILE");
    party_require(&parties.party[0], -EINVAL, "cannot open /nowhere/secret SLUICE_SECRET_FILE");
}

/* Only root can change the owner of a file. */
static bool is_no_root(void)
{
    return geteuid() != 0;
}

/* A file that root may read is not a secret of root unless root owns it. */
TEST(d3_owners_of_secrets, .unless = is_no_root)
{
    struct parties parties;
    char path[40], words[120];
    write_secret(path, "the secret of somebody", 0600);
    parties_make(&parties, 1, LONG);
    parties.party[0].attr.secret_file = path;
    require(chown(path, 12345, (gid_t)-1) == 0, "%m");
    parties_run(&parties, NULL);
    snprintf(words, sizeof(words), "%s user 12345 user 0 root" BY_ATTR, path);
    party_require(&parties.party[0], -EACCES, words);
    require(chown(path, 0, 0) == 0, "%m");
    parties.party[0].error = 0;
    parties_run(&parties, NULL);
    party_require(&parties.party[0], 0, "");
    unlink(path);
}

/* A rank with a wrong secret fails; the others go on when the right one comes. */
TEST(d3_a_wrong_secret)
{
    struct parties parties;
    char right[40], wrong[40];
    write_secret(right, "the secret of this run", 0600);
    write_secret(wrong, "the secret of that run", 0600);
    parties_make(&parties, 4, LONG);
    for (uint32_t i = 0; i < 4; i++) {
        parties.party[i].attr.secret_file = right;
    }
    parties.party[2].absent = true;
    parties_start(&parties, call);
    static struct party liar;
    for (int i = 0; i < 2; i++) {
        liar = parties.party[2];
        liar.attr.secret_file = i == 0 ? wrong : NULL;
        party_start(&liar, call);
        pthread_join(liar.thread, NULL);
        party_require(&liar, -EACCES, "secret");
    }
    party_start(&parties.party[2], call);
    parties_join(&parties);
    require_all_ok(&parties);
    unlink(right);
    unlink(wrong);
}

/* Rank 0 with one and rank 1 without, the other way, and both with another. */
TEST(d3_secrets_that_differ, .times = 3)
{
    static const char *const words[] = {"rank 0 has a secret, and rank 1 has none",
                                        "rank 1 has a secret, and rank 0 has none",
                                        "rank 1 refused secret"};
    struct parties parties;
    char one[40], other[40];
    write_secret(one, "the secret of this run", 0600);
    write_secret(other, "the secret of that run", 0600);
    parties_make(&parties, 2, SLUICE_S(1));
    parties.party[0].attr.secret_file = _i == 1 ? NULL : one;
    parties.party[1].attr.secret_file = _i == 0 ? NULL : other;
    parties_run(&parties, NULL);
    party_require(&parties.party[0], -EACCES, words[_i]);
    party_require(&parties.party[1], -EACCES, "secret");
    unlink(one);
    unlink(other);
}

/* Passes bytes on in both directions until rank 1 has sent its proof, and keeps all of them. */
static void relay(int rank, int root, uint8_t kept[HELLO + PROOF_BYTES], uint8_t answer[ANSWER])
{
    require(hear(rank, kept, HELLO), "no hello of rank 1");
    say(root, kept, HELLO);
    require(hear(root, answer, ANSWER), "no answer of rank 0");
    say(rank, answer, ANSWER);
    require(hear(rank, kept + HELLO, PROOF_BYTES), "no proof of rank 1");
}

TEST(d3_a_replayed_proof)
{
    struct parties parties;
    char path[40], other[64];
    uint8_t kept[HELLO + PROOF_BYTES], bytes[ANSWER];
    uint16_t port = find_port();
    write_secret(path, "the secret of this run", 0600);
    parties_make(&parties, 2, LONG);
    parties.party[0].attr.secret_file = parties.party[1].attr.secret_file = path;
    struct party victim = parties.party[1];
    snprintf(other, sizeof(other), "127.0.0.1:%u", port);
    victim.attr.root = other;
    victim.deadline = SLUICE_MS(300);
    int listener = listen_at(&port);
    party_start(&parties.party[0], call);
    party_start(&victim, call);
    int rank = accept(listener, NULL, NULL);
    int root = dial_port(parties.port);
    relay(rank, root, kept, bytes);
    close(root);
    close(rank);
    close(listener);
    pthread_join(victim.thread, NULL);
    party_require(&victim, -ETIMEDOUT, "rank 0");
    /* The same hello is accepted, but the proof belonged to another greeting. */
    root = dial_port(parties.port);
    say(root, kept, HELLO);
    require(hear(root, bytes, ANSWER) && bytes[WORD + 3] == GO_ON, "no answer");
    say(root, kept + HELLO, PROOF_BYTES);
    require(hear(root, bytes, REPLY) && bytes[3] == DENIED && !hear(root, bytes, 1),
            "it was not denied");
    close(root);
    party_start(&parties.party[1], call);
    parties_join(&parties);
    party_require(&parties.party[0], 0, "");
    party_require(&parties.party[1], 0, "");
    unlink(path);
}

/* A false rank 0 relays a good greeting once, and then replays what rank 0 said in it. */
TEST(d3_a_replayed_rank_0)
{
    struct parties parties;
    char path[40], other[64];
    uint8_t kept[HELLO + PROOF_BYTES], root_said[ANSWER + REPLY];
    uint16_t port = find_port();
    write_secret(path, "the secret of this run", 0600);
    parties_make(&parties, 2, LONG);
    parties.party[0].attr.secret_file = parties.party[1].attr.secret_file = path;
    struct party victim = parties.party[1];
    snprintf(other, sizeof(other), "127.0.0.1:%u", port);
    victim.attr.root = other;
    int listener = listen_at(&port);
    party_start(&parties.party[0], NULL);
    party_start(&victim, NULL);
    int rank = accept(listener, NULL, NULL);
    int root = dial_port(parties.port);
    relay(rank, root, kept, root_said);
    say(root, kept + HELLO, PROOF_BYTES);
    require(hear(root, root_said + ANSWER, sizeof(root_said) - ANSWER), "no reply of rank 0");
    require(root_said[ANSWER + 3] == ADMITTED, "rank 1 was refused");
    say(rank, root_said + ANSWER, sizeof(root_said) - ANSWER);
    /* The greeting is complete, so rank 0 starts; the victim gets no message of that. */
    pthread_join(parties.party[0].thread, NULL);
    party_require(&parties.party[0], 0, "");
    close(root);
    close(rank);
    pthread_join(victim.thread, NULL);
    party_require(&victim, -ECONNRESET, "rank 0 gone");
    victim.error = 0;
    party_start(&victim, NULL);
    rank = accept(listener, NULL, NULL);
    require(hear(rank, kept, HELLO), "no hello of the new rank 1");
    say(rank, root_said, sizeof(root_said));
    pthread_join(victim.thread, NULL);
    party_require(&victim, -EACCES, "does not know the secret");
    close(rank);
    close(listener);
    unlink(path);
}

/*
 * A false rank 0 sends back the words of rank 1: its hello, or, with an answer of its own, its
 * proof.
 */
TEST(d3_reflected_words_of_rank_1, .times = 2)
{
    struct parties parties;
    char path[40];
    uint8_t bytes[HELLO], reply[REPLY] = {0, 0, 0, STANDS};
    write_secret(path, "the secret of this run", 0600);
    parties_make(&parties, 2, LONG);
    parties.party[0].absent = true;
    parties.party[1].attr.secret_file = path;
    int listener = listen_at(&parties.port);
    parties_start(&parties, call);
    int fd = accept(listener, NULL, NULL);
    require(hear(fd, bytes, HELLO), "no hello");
    if (_i == 1) {
        make_answer(bytes);
        bytes[MEANS + 3] = 1;
    }
    say(fd, bytes, _i == 0 ? HELLO : ANSWER);
    if (_i == 1) {
        require(hear(fd, reply + REPLY - PROOF_BYTES, PROOF_BYTES), "no proof");
        say(fd, reply, REPLY);
    }
    parties_join(&parties);
    party_require(&parties.party[1], _i == 0 ? -EPROTO : -EACCES,
                  _i == 0 ? "not rank 0" : "does not know the secret");
    close(fd);
    close(listener);
    unlink(path);
}

/*
 * A process with the secret is a rank: if it expects another number of ranks, they cannot become
 * complete, and all get the reason.
 */
TEST(d3_another_number_of_ranks_with_a_secret)
{
    struct parties parties;
    char path[40];
    int64_t start = fair_now();
    write_secret(path, "the secret of this run", 0600);
    parties_make(&parties, 4, LONG);
    for (uint32_t i = 0; i < 4; i++) {
        parties.party[i].attr.secret_file = path;
    }
    parties.party[2].attr.ranks = 3;
    parties.party[2].delay = SLUICE_MS(300);
    parties.party[3].absent = true;
    parties_run(&parties, NULL);
    require(fair_now() - start < SOON, "they waited for their deadlines");
    for (uint32_t i = 0; i < 3; i++) {
        party_require(&parties.party[i], -EPROTO, "rank 2 at 127.0.0.1: 3 ranks, rank 0 says 4");
    }
    unlink(path);
}

int main(void)
{
    const struct tests cases[] = {{"tcp", WIRE_TCP, 60}};
    /* Each refusal logs a warning. */
    if (sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL) != 0) {
        return EXIT_FAILURE;
    }
    return run_groups("exchange_secret", cases, COUNT(cases));
}
