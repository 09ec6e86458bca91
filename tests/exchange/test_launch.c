/* SPDX-License-Identifier: MIT */
/*
 * Sources of a process's rank: each alone, several that agree or disagree, incomplete ones, and
 * nonsense.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/suite.h"
#include "exchange/exchange.h"

/* All variables that the library reads; a test sets some as "NAME=VALUE". */
static const char *const looked_at[] = {
    "SLUICE_EXCHANGE",
    "SLUICE_RANK",
    "SLUICE_RANKS",
    "SLUICE_ROOT",
    "SLUICE_JOB",
    "SLUICE_SECRET_FILE",
    "SLUICE_HOST_FILE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "PMI_FD",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_JOBID",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NODELIST",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_STEP_RESV_PORTS",
};

static unsigned warnings;
static unsigned notes;
static char last_line[512];

static void count_line(uint32_t level, const char *line, void *user)
{
    (void)user;
    warnings += level <= SLUICE_LOG_WARN;
    notes += level == SLUICE_LOG_INFO;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

/* Sets these variables, separated by blanks, and clears all others of the list. */
static void set_environment(const char *words)
{
    char copy[1024];
    char *rest;
    for (size_t i = 0; i < COUNT(looked_at); i++) {
        unsetenv(looked_at[i]);
    }
    warnings = 0;
    notes = 0;
    require_ok(sluice_log_set(SLUICE_LOG_DEBUG, count_line, NULL));
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value = '\0';
        setenv(word, value + 1, 1);
    }
}

static struct slu_launch read_launch(const char *words, const struct sluice_exchange_attr *attr)
{
    struct slu_launch launch;
    set_environment(words);
    int result = slu_launch_read(attr, &launch);
    require(result == 0, "%s: %d, %s", words, result, sluice_last_error());
    return launch;
}

static void expect(const char *words, uint32_t rank, uint32_t ranks, const char *source)
{
    struct slu_launch launch = read_launch(words, NULL);
    require(launch.rank == rank && launch.ranks == ranks, "%s: %u of %u", words, launch.rank,
            launch.ranks);
    require(strstr(launch.source, source), "%s: %s", words, launch.source);
}

static void refuse(const char *words, int error, const char *text)
{
    struct slu_launch launch;
    set_environment(words);
    require_error(slu_launch_read(NULL, &launch), -error, text);
}

TEST(each_alone)
{
    expect("SLUICE_RANK=3 SLUICE_RANKS=4", 3, 4, "SLUICE_RANK");
    expect("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", 1, 2, "OMPI_COMM_WORLD_RANK");
    expect("PMI_RANK=0 PMI_SIZE=1", 0, 1, "PMI_RANK");
    expect("RANK=7 WORLD_SIZE=8 MASTER_ADDR=a MASTER_PORT=29500", 7, 8, "WORLD_SIZE");
    expect("SLURM_PROCID=65535 SLURM_NTASKS=65536", 65535, 65536, "SLURM_PROCID");
    require(warnings == 0, "%s", last_line);
}

TEST(attributes_first)
{
    struct sluice_exchange_attr attr = {.size = sizeof(attr),
                                        .kind = SLUICE_EXCHANGE_TCP,
                                        .rank = 1,
                                        .ranks = 3,
                                        .root = "[fe80::1]:9",
                                        .secret_file = "/attr",
                                        .job = "by attributes"};
    struct slu_launch launch =
        read_launch("SLUICE_RANK=9 SLUICE_RANKS=2 SLUICE_EXCHANGE=pmix SLUICE_ROOT=b:2 "
                    "SLUICE_JOB=j SLUICE_SECRET_FILE=/f OMPI_COMM_WORLD_RANK=x",
                    &attr);
    require(launch.rank == 1 && launch.ranks == 3, "%u of %u", launch.rank, launch.ranks);
    require(launch.kind == SLUICE_EXCHANGE_TCP, "%u", launch.kind);
    require(strcmp(launch.root, "[fe80::1]:9") == 0, "%s", launch.root);
    require(strcmp(launch.secret_file, "/attr") == 0, "%s", launch.secret_file);
    require(strcmp(launch.job, "by attributes") == 0, "%s", launch.job);
    /* Values that the attributes leave out come from the environment. */
    struct sluice_exchange_attr some = {.size = sizeof(some), .rank = 2, .ranks = 3};
    launch = read_launch("SLUICE_ROOT=b:2 SLUICE_JOB=j SLUICE_SECRET_FILE=/f", &some);
    require(strcmp(launch.root, "b:2") == 0, "%s", launch.root);
    require(strcmp(launch.secret_file, "/f") == 0, "%s", launch.secret_file);
    require(strcmp(launch.job, "j") == 0, "%s", launch.job);
    /* Without ranks, rank 0 is not set, and each other rank is. */
    some.ranks = 0;
    launch = read_launch("SLUICE_RANK=0 SLUICE_RANKS=3", &some);
    require(launch.rank == 2 && launch.ranks == 3, "%u of %u", launch.rank, launch.ranks);
    some.rank = SLUICE_ZERO;
    launch = read_launch("SLUICE_RANK=1 SLUICE_RANKS=3 PMI_RANK=2 PMI_SIZE=3", &some);
    require(launch.rank == 0 && launch.ranks == 3, "%u of %u", launch.rank, launch.ranks);
    require(strstr(launch.source, "sluice_exchange_attr.rank and SLUICE_RANKS"), "%s",
            launch.source);
    some.rank = 0;
    some.root = "b:2";
    launch = read_launch("SLUICE_RANK=1 SLUICE_RANKS=3", &some);
    require(launch.rank == 1 && launch.ranks == 3, "%u of %u", launch.rank, launch.ranks);
}

/* Each attribute that only TCP uses, alone. */
static const struct of_tcp {
    const char *name;
    struct sluice_exchange_attr attr;
} of_tcp[] = {
    {"sluice_exchange_attr.ranks", {.size = sizeof(struct sluice_exchange_attr), .ranks = 2}},
    {"sluice_exchange_attr.rank", {.size = sizeof(struct sluice_exchange_attr), .rank = 1}},
    {"sluice_exchange_attr.rank",
     {.size = sizeof(struct sluice_exchange_attr), .rank = SLUICE_ZERO}},
    {"sluice_exchange_attr.root", {.size = sizeof(struct sluice_exchange_attr), .root = "a:1"}},
    {"sluice_exchange_attr.host_file",
     {.size = sizeof(struct sluice_exchange_attr), .host_file = "/no/such/file"}},
    {"sluice_exchange_attr.secret_file",
     {.size = sizeof(struct sluice_exchange_attr), .secret_file = "/f"}},
    {"sluice_exchange_attr.job", {.size = sizeof(struct sluice_exchange_attr), .job = "j"}},
};

/*
 * An attribute of TCP is refused with PMIx, whichever way that was chosen; otherwise it selects
 * TCP.
 */
TEST(attributes_of_tcp, .times = COUNT(of_tcp))
{
    const struct of_tcp *one = &of_tcp[_i];
    struct sluice_exchange_attr attr = one->attr;
    struct slu_launch launch;
    char words[80];
    snprintf(words, sizeof(words), "%s PMIx", one->name);
    attr.kind = SLUICE_EXCHANGE_PMIX;
    set_environment("PMIX_RANK=0 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2");
    require_error(slu_launch_read(&attr, &launch), -EINVAL, words);
    attr.kind = SLUICE_EXCHANGE_AUTO;
    snprintf(words, sizeof(words), "SLUICE_EXCHANGE is pmix %s", one->name);
    set_environment("PMIX_RANK=0 SLUICE_EXCHANGE=pmix SLUICE_RANKS=2");
    require_error(slu_launch_read(&attr, &launch), -EINVAL, words);
    set_environment("PMIX_RANK=0 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 SLUICE_RANKS=2 "
                    "SLUICE_RANK=1");
    int result = slu_launch_read(&attr, &launch);
    if (attr.host_file) {
        require(result < 0, "the host file was not read");
        require_error(result, result, "/no/such/file");
        return;
    }
    require_result(result, 0);
    require_result(launch.kind, SLUICE_EXCHANGE_TCP);
    require_result(launch.ranks, 2);
    require_result(launch.rank, attr.ranks || attr.rank == SLUICE_ZERO ? 0 : 1);
    /* Here only PMIx knows the number of ranks. */
    set_environment("PMIX_RANK=0");
    result = slu_launch_read(&attr, &launch);
    if (attr.ranks != 0) {
        require_result(launch.kind, SLUICE_EXCHANGE_TCP);
    } else {
        require_error(result, -EINVAL, attr.rank != 0 ? "how many ranks" : one->name);
    }
    /* An empty text counts as unset. */
    struct sluice_exchange_attr empty = {.size = sizeof(empty),
                                         .kind = SLUICE_EXCHANGE_PMIX,
                                         .root = "",
                                         .host_file = "",
                                         .secret_file = "",
                                         .job = ""};
    require_ok(slu_launch_read(&empty, &launch));
}

TEST(wrong_attributes)
{
    struct slu_launch launch;
    char job[65];
    struct sluice_exchange_attr attr = {.size = sizeof(attr), .rank = 3, .ranks = 3};
    set_environment("");
    require_error(slu_launch_read(&attr, &launch), -EINVAL, "rank is 3 3");
    attr.ranks = SLUICE_MAX_RANKS + 1;
    require_error(slu_launch_read(&attr, &launch), -EINVAL, "ranks is 65537");
    attr.ranks = 0;
    require_error(slu_launch_read(&attr, &launch), -EINVAL,
                  "sluice_exchange_attr.rank is 3 how many");
    attr.rank = SLUICE_MAX_RANKS;
    require_error(slu_launch_read(&attr, &launch), -EINVAL, "rank is 65536");
    attr.rank = 3;
    attr.ranks = 4;
    attr.kind = SLUICE_EXCHANGE_OWN;
    require_error(slu_launch_read(&attr, &launch), -EINVAL, "kind is 3");
    attr.kind = SLUICE_EXCHANGE_TCP;
    attr.root = "nowhere";
    require_error(slu_launch_read(&attr, &launch), -EINVAL, "root 'nowhere' host:port");
    attr.root = NULL;
    memset(job, 'j', sizeof(job));
    job[64] = '\0';
    attr.job = job;
    require_error(slu_launch_read(&attr, &launch), -EINVAL, "job has 64 63");
}

TEST(kinds)
{
    /* A rank set by hand selects TCP; a launcher's rank leaves the choice open. */
    require_result(read_launch("SLUICE_RANK=0 SLUICE_RANKS=1", NULL).kind, SLUICE_EXCHANGE_TCP);
    require_result(read_launch("PMI_RANK=0 PMI_SIZE=1", NULL).kind, SLUICE_EXCHANGE_AUTO);
    require_result(read_launch("SLUICE_EXCHANGE=tcp PMI_RANK=0 PMI_SIZE=1", NULL).kind,
                   SLUICE_EXCHANGE_TCP);
    /* PMIx needs nothing else, and only it knows the number of ranks. */
    require_result(read_launch("SLUICE_EXCHANGE=pmix", NULL).kind, SLUICE_EXCHANGE_PMIX);
    require_result(read_launch("PMIX_RANK=2", NULL).kind, SLUICE_EXCHANGE_PMIX);
    refuse("SLUICE_EXCHANGE=tcp PMIX_RANK=2", EINVAL, "PMIX_RANK only PMIx");
    /* A wrong value is logged, and counts as auto. */
    require_result(read_launch("SLUICE_EXCHANGE=udp PMI_RANK=0 PMI_SIZE=1", NULL).kind,
                   SLUICE_EXCHANGE_AUTO);
    require(warnings == 1, "%u, %s", warnings, last_line);
}

TEST(halves)
{
    refuse("SLUICE_RANK=0", EINVAL, "SLUICE_RANK is 0 how many SLUICE_RANKS");
    refuse("SLUICE_RANKS=2", EINVAL, "SLUICE_RANKS is set SLUICE_RANK");
    refuse("SLUICE_RANK=0 PMI_RANK=0 PMI_SIZE=1", EINVAL, "SLUICE_RANK is 0 how many");
    refuse("OMPI_COMM_WORLD_RANK=0", EINVAL, "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE");
    refuse("OMPI_COMM_WORLD_SIZE=2", EINVAL, "OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK");
    refuse("PMI_RANK=0", EINVAL, "PMI_RANK PMI_SIZE");
    /* Names that other programs use, and variables of a batch script, are ignored. */
    refuse("RANK=0 WORLD_SIZE=2", ENOENT, "nothing says");
    refuse("RANK=0", ENOENT, "nothing says");
    refuse("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", ENOENT, "nothing says");
    refuse("SLURM_PROCID=0", ENOENT, "nothing says");
}

TEST(nonsense)
{
    refuse("SLUICE_RANK=2 SLUICE_RANKS=2", EINVAL, "SLUICE_RANK is 2 SLUICE_RANKS 2");
    refuse("SLUICE_RANK=x SLUICE_RANKS=2", EINVAL, "SLUICE_RANK 'x'");
    refuse("SLUICE_RANK=0 SLUICE_RANKS=0", EINVAL, "SLUICE_RANKS '0'");
    refuse("SLUICE_RANK=0 SLUICE_RANKS=65537", EINVAL, "SLUICE_RANKS '65537'");
    refuse("PMI_RANK=4 PMI_SIZE=4", EINVAL, "PMI_RANK '4' PMI_SIZE 4");
    refuse("PMI_RANK=-1 PMI_SIZE=4", EINVAL, "PMI_RANK '-1'");
    refuse("PMI_RANK=1 PMI_SIZE=many", EINVAL, "PMI_SIZE 'many'");
    refuse("SLURM_PROCID=1 SLURM_NTASKS=0", EINVAL, "SLURM_NTASKS '0'");
    refuse("SLURM_PROCID= SLURM_NTASKS=", ENOENT, "nothing says");
}

TEST(nothing)
{
    refuse("", ENOENT,
           "nothing attributes SLUICE_RANK SLUICE_RANKS Open MPI PMI PMIx torchrun Slurm "
           "SLUICE_HOST_FILE mpirun srun sluice-launch SLUICE_RANK=0 SLUICE_RANKS=1");
}

/* Without jansson there is another error, of the same file. */
static void refuse_host_file(const char *words, const struct sluice_exchange_attr *attr,
                             const char *source)
{
    struct slu_launch launch;
    set_environment(words);
    int result = slu_launch_read(attr, &launch);
    require(result == -EINVAL || result == -EOPNOTSUPP, "%d", result);
    require_error(result, result, "/no/such/file");
    require_error(result, result, source);
}

TEST(host_files_that_are_not_there)
{
    struct sluice_exchange_attr attr = {.size = sizeof(attr), .host_file = "/no/such/file"};
    refuse_host_file("SLUICE_HOST_FILE=/no/such/file", NULL, "; SLUICE_HOST_FILE names");
    refuse_host_file("SLUICE_HOST_FILE=/dev/null", &attr, "; sluice_exchange_attr.host_file names");
}

/* Error texts of a wrong setting name its source. */
TEST(sources)
{
    struct sluice_exchange_attr attr = {.size = sizeof(attr), .root = "a:1", .secret_file = "/f"};
    struct slu_launch launch =
        read_launch("SLUICE_RANK=0 SLUICE_RANKS=2 SLUICE_ROOT=b:2 SLUICE_SECRET_FILE=/g", &attr);
    require(strcmp(launch.root_source, "sluice_exchange_attr.root") == 0, "%s", launch.root_source);
    require(strcmp(launch.secret_source, "sluice_exchange_attr.secret_file") == 0, "%s",
            launch.secret_source);
    launch =
        read_launch("SLUICE_RANK=0 SLUICE_RANKS=2 SLUICE_ROOT=b:2 SLUICE_SECRET_FILE=/g", NULL);
    require(strcmp(launch.root_source, "SLUICE_ROOT") == 0, "%s", launch.root_source);
    require(strcmp(launch.secret_source, "SLUICE_SECRET_FILE") == 0, "%s", launch.secret_source);
    launch = read_launch("RANK=0 WORLD_SIZE=2 MASTER_ADDR=m MASTER_PORT=29500", NULL);
    require(strcmp(launch.root_source, "the launcher") == 0, "%s", launch.root_source);
    launch = read_launch("SLUICE_RANK=0 SLUICE_RANKS=2", NULL);
    require(!launch.root_source && !launch.secret_source, "a source of nothing%s", "");
}

TEST(several)
{
    expect("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1 PMI_RANK=1 PMI_SIZE=2", 1, 2,
           "OMPI");
    require(warnings == 0 && notes == 0, "%s", last_line);
    /* A launcher within a job of Slurm is common. */
    expect("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=1", 1, 2,
           "OMPI");
    require(warnings == 0 && notes == 1, "%u, %u", warnings, notes);
    expect("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMI_RANK=0 PMI_SIZE=4", 1, 2, "OMPI");
    require(warnings == 1, "%u", warnings);
    require(strstr(last_line, "PMI_RANK") && strstr(last_line, "0 of 4") &&
                strstr(last_line, "1 of 2"),
            "%s", last_line);
    expect("PMI_RANK=1 PMI_SIZE=2 PMIX_RANK=0", 1, 2, "PMI_RANK");
    require(warnings == 1 && strstr(last_line, "PMIX_RANK"), "%u, %s", warnings, last_line);
    /* Nonsense in a source of lower rank is not reported. */
    expect("SLUICE_RANK=0 SLUICE_RANKS=2 PMI_RANK=x", 0, 2, "SLUICE_RANK");
    expect("PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=x SLURM_NTASKS=2", 1, 2, "PMI_RANK");
    require(warnings == 0, "%s", last_line);
}

TEST(roots)
{
    static const char *const wrong[] = {
        "host",  "host:", ":1",      "host:0",           "host:65536",         "1:2:3",
        "[::1]", "[]:1",  "host:1x", "@0123456789abcde", "@0123456789abcdef0", "@0123456789ABCDEF"};
    static const char *const right[] = {"host:1", "10.0.0.1:65535", "[::1]:80", "a.b-c_d:22",
                                        "@0123456789abcdef"};
    char words[128];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        snprintf(words, sizeof(words), "SLUICE_RANK=0 SLUICE_RANKS=1 SLUICE_ROOT=%s", wrong[i]);
        refuse(words, EINVAL, "SLUICE_ROOT host:port");
    }
    for (size_t i = 0; i < COUNT(right); i++) {
        snprintf(words, sizeof(words), "SLUICE_RANK=0 SLUICE_RANKS=1 SLUICE_ROOT=%s", right[i]);
        struct slu_launch launch = read_launch(words, NULL);
        require(strcmp(launch.root, right[i]) == 0, "%s", launch.root);
    }
}

static void expect_pmi(const char *words, bool pmi)
{
    struct slu_launch launch = read_launch(words, NULL);
    require(launch.pmi == pmi, "%s: %d", words, launch.pmi);
}

/*
 * The PMI server is asked for the address of rank 0 if it gave the rank and no other source has the
 * address.
 */
TEST(servers_of_pmi)
{
    expect_pmi("PMI_RANK=1 PMI_SIZE=2 PMI_FD=7", true);
    expect_pmi("SLUICE_EXCHANGE=tcp PMI_RANK=1 PMI_SIZE=2 PMI_FD=7", true);
    expect_pmi("PMI_RANK=1 PMI_SIZE=2", false);
    expect_pmi("PMI_RANK=0 PMI_SIZE=1 PMI_FD=7", false);
    expect_pmi("PMI_RANK=1 PMI_SIZE=2 PMI_FD=7 SLUICE_ROOT=r:1", false);
    expect_pmi("PMI_RANK=1 PMI_SIZE=2 PMI_FD=7 SLUICE_RANK=0 SLUICE_RANKS=2", false);
    expect_pmi("PMI_RANK=1 PMI_SIZE=2 PMI_FD=7 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=1 "
               "SLURM_STEP_ID=2 SLURM_STEP_NODELIST=a",
               false);
    expect_pmi("SLURM_PROCID=0 SLURM_NTASKS=2 PMI_FD=7", false);
}

static void expect_root(const char *words, const char *root)
{
    struct slu_launch launch = read_launch(words, NULL);
    require(strcmp(launch.root, root) == 0, "%s: %s", words, launch.root);
}

TEST(roots_of_launchers)
{
    static const struct {
        const char *list, *host;
    } lists[] = {
        {"alpha", "alpha:20000"},
        {"alpha,beta", "alpha:20000"},
        {"node[1-4,7]", "node1:20000"},
        {"node[007-012]", "node007:20000"},
        {"node[3]", "node3:20000"},
        {"n-1.x[2,4],other", "n-1.x2:20000"},
        {"node[1-4]-ib", ""},
        {"r[1-2]n[3-4]", ""},
        {"node[", ""},
        {"node[x]", ""},
        {"[1-2]", ""},
        {"a b", ""},
    };
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct slu_launch launch;
        set_environment("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=0 SLURM_STEP_ID=0");
        setenv("SLURM_STEP_NODELIST", lists[i].list, 1);
        require_ok(slu_launch_read(NULL, &launch));
        require(strcmp(launch.root, lists[i].host) == 0, "%s: %s", lists[i].list, launch.root);
    }
    expect_root("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=1 SLURM_STEP_ID=2 "
                "SLURM_STEP_NODELIST=a",
                "a:20033");
    expect_root("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=1 SLURM_STEP_ID=2 "
                "SLURM_STEP_NODELIST=a SLURM_STEP_RESV_PORTS=12000-12003",
                "a:12000");
    expect_root("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NODELIST=a", "");
    expect_root("SLUICE_ROOT=r:1 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=1 SLURM_STEP_ID=2 "
                "SLURM_STEP_NODELIST=a",
                "r:1");
    expect_root("RANK=0 WORLD_SIZE=2 MASTER_ADDR=m MASTER_PORT=29500", "m:29501");
    expect_root("RANK=0 WORLD_SIZE=2 MASTER_ADDR=fe80::2 MASTER_PORT=65534", "[fe80::2]:65535");
    expect_root("RANK=0 WORLD_SIZE=2 MASTER_ADDR=m MASTER_PORT=65535", "m:1024");
    refuse("RANK=0 WORLD_SIZE=2 MASTER_ADDR=m MASTER_PORT=none", EINVAL, "root 'm:none'");
    /* Slurm that starts by PMI overrides PMI, unless it numbers the ranks differently. */
    expect_root("PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=0 "
                "SLURM_STEP_ID=1 SLURM_STEP_NODELIST=a",
                "a:20001");
    expect_root("PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=0 "
                "SLURM_STEP_ID=1 SLURM_STEP_NODELIST=a",
                "");
    expect_root("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_JOB_ID=1 SLURM_STEP_ID=2 "
                "SLURM_STEP_NODELIST=a",
                "");
}

static void expect_job(const char *words, const char *job)
{
    struct slu_launch launch = read_launch(words, NULL);
    require(strcmp(launch.job, job) == 0, "%s: %s", words, launch.job);
}

TEST(jobs)
{
    expect_job("SLUICE_RANK=0 SLUICE_RANKS=1 SLURM_JOB_ID=5 SLURM_STEP_ID=6", "");
    expect_job("SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=5 SLURM_STEP_ID=6", "5.6");
    expect_job("SLUICE_JOB=mine SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=5 SLURM_STEP_ID=6",
               "mine");
    expect_job("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_NAMESPACE=ns "
               "SLURM_JOB_ID=5 SLURM_STEP_ID=6",
               "ns");
    expect_job("PMI_RANK=0 PMI_SIZE=1 PMI_JOBID=pj", "pj");
    expect_job("RANK=0 WORLD_SIZE=1 MASTER_ADDR=m MASTER_PORT=1 TORCHELASTIC_RUN_ID=t", "t");
    expect_job("PMI_RANK=0 PMI_SIZE=1 "
               "PMI_JOBID=0123456789012345678901234567890123456789012345678901234567890123456789",
               "789012345678901234567890123456789012345678901234567890123456789");
}

static struct sluice_launch_info told(const char *words)
{
    struct sluice_launch_info info = {.size = sizeof(info)};
    set_environment(words);
    int result = sluice_launch_query(&info);
    require(result == 0, "%s: %d, %s", words, result, sluice_last_error());
    require(info.size == sizeof(info) && info.reserved == 0, "%u, %u", info.size, info.reserved);
    return info;
}

static void expect_launcher(const char *words, const char *launcher, const char *source,
                            uint32_t rank, uint32_t ranks)
{
    struct sluice_launch_info info = told(words);
    require(strcmp(info.launcher, launcher) == 0, "%s: '%s'", words, info.launcher);
    require(strcmp(info.source, source) == 0, "%s: '%s'", words, info.source);
    require(info.rank == rank && info.ranks == ranks, "%s: %u of %u", words, info.rank, info.ranks);
}

TEST(what_the_program_is_told)
{
    expect_launcher("SLUICE_RANK=3 SLUICE_RANKS=4", "", "SLUICE_RANK and SLUICE_RANKS", 3, 4);
    expect_launcher("SLUICE_RANK=3 SLUICE_RANKS=4 SLUICE_JOB=launch-1-2", "sluice-launch",
                    "SLUICE_RANK and SLUICE_RANKS", 3, 4);
    expect_launcher("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", "Open MPI",
                    "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE", 1, 2);
    expect_launcher("PMI_RANK=0 PMI_SIZE=1", "MPICH or another one of PMI", "PMI_RANK and PMI_SIZE",
                    0, 1);
    expect_launcher("RANK=7 WORLD_SIZE=8 MASTER_ADDR=a MASTER_PORT=29500", "torchrun",
                    "RANK and WORLD_SIZE", 7, 8);
    expect_launcher("SLURM_PROCID=2 SLURM_NTASKS=3", "Slurm", "SLURM_PROCID and SLURM_NTASKS", 2,
                    3);
    expect_launcher("PMIX_RANK=2", "PMIx", "PMIx", 0, 0);
    expect_launcher("SLUICE_EXCHANGE=pmix OMPI_COMM_WORLD_RANK=1", "PMIx", "PMIx", 0, 0);
    require(told("PMIX_RANK=2").kind == SLUICE_EXCHANGE_PMIX, "of PMIx");
    require(told("SLUICE_RANK=0 SLUICE_RANKS=1").kind == SLUICE_EXCHANGE_TCP, "by hand");
    struct sluice_launch_info info =
        told("SLURM_PROCID=2 SLURM_NTASKS=3 SLURM_JOB_ID=1 SLURM_STEP_ID=2 "
             "SLURM_STEP_NODELIST=a[3-4] SLUICE_LOCAL_RANK=1");
    require(strcmp(info.root, "a3:20033") == 0 && strcmp(info.job, "1.2") == 0, "%s, %s", info.root,
            info.job);
    require(info.local_rank == 1 && strcmp(info.local_source, "SLUICE_LOCAL_RANK") == 0, "%u, %s",
            info.local_rank, info.local_source);
    unsetenv("SLUICE_LOCAL_RANK");
    info = told("SLUICE_RANK=3 SLUICE_RANKS=4");
    require(info.local_rank == 0 && info.local_source[0] == '\0' && info.root[0] == '\0', "%u, %s",
            info.local_rank, info.local_source);
}

TEST(what_the_program_is_not_told)
{
    struct sluice_launch_info info = {.size = sizeof(info), .rank = 77};
    set_environment("");
    require_error(sluice_launch_query(&info), -ENOENT, "nothing says");
    set_environment("SLUICE_RANK=4 SLUICE_RANKS=4");
    require_error(sluice_launch_query(&info), -EINVAL, "SLUICE_RANK 4");
    set_environment("SLUICE_RANK=0 SLUICE_RANKS=4 SLUICE_LOCAL_RANK=x");
    require_error(sluice_launch_query(&info), -EINVAL, "SLUICE_LOCAL_RANK");
    unsetenv("SLUICE_LOCAL_RANK");
    require_error(sluice_launch_query(NULL), -EINVAL, "NULL");
    info.size = 8;
    require_error(sluice_launch_query(&info), -EINVAL, "too small");
    info.size = 5000;
    require_error(sluice_launch_query(&info), -E2BIG, "4096");
    require(info.rank == 77, "%u", info.rank);
}

int main(void)
{
    return RUN_GROUPS("launch", {"launch", WIRE_SELF, 30});
}
