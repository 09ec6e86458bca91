/* SPDX-License-Identifier: MIT */
/*
 * Finds out which rank this process is. The sources are the attributes, SLUICE_RANK and
 * SLUICE_RANKS, the variables of launchers, and the host file; the first one that says anything is
 * used. A fixed order is easier to explain than a vote. A source that names only one of rank and
 * ranks, or a wrong value, is an error: ignoring it could make the processes of a job use different
 * sources.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/env_check.h"
#include "connect/address.h"
#include "exchange/exchange.h"

/* Ports for rank 0 of a Slurm job that names none, below the ports of clients. */
#define SLURM_FIRST_PORT 20000
#define SLURM_PORTS 12000

/* Follows the last port: the first that needs no privilege. */
#define FIRST_FREE_PORT 1024

struct pair {
    uint32_t rank, ranks;
};

/*
 * Launchers, the innermost first. A launcher that starts processes within a Slurm job passes on
 * Slurm's variables, which then describe itself and not the ranks.
 */
struct launcher {
    const char *name; /* for texts */
    const char *rank, *ranks;
    const char *job; /* equal in all ranks; or NULL */
    bool inherited;  /* often contradicts other launchers, in regular use */
    bool pmi;        /* has a PMI-1 server if PMI_FD is set */
    bool (*root)(char *text, size_t size);
};

static bool find_torch_root(char *text, size_t size);
static bool find_slurm_root(char *text, size_t size);

static const struct launcher launchers[] = {
    {.name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .ranks = "OMPI_COMM_WORLD_SIZE",
     .job = "PMIX_NAMESPACE"},
    {.name = "MPICH or another one of PMI",
     .rank = "PMI_RANK",
     .ranks = "PMI_SIZE",
     .job = "PMI_JOBID",
     .pmi = true},
    {.name = "torchrun",
     .rank = "RANK",
     .ranks = "WORLD_SIZE",
     .job = "TORCHELASTIC_RUN_ID",
     .root = find_torch_root},
    {.name = "Slurm",
     .rank = "SLURM_PROCID",
     .ranks = "SLURM_NTASKS",
     .inherited = true,
     .root = find_slurm_root},
};
#define LAUNCHERS (sizeof launchers / sizeof launchers[0])

/*
 * torchrun uses common names, so it counts only if all four are set. Its agent, or torch in rank 0,
 * listens at its own port, so this library takes the next one. An invalid port is kept, so that the
 * error text can name it.
 */
static bool find_torch_root(char *text, size_t size)
{
    const char *host = slu_getenv("MASTER_ADDR");
    const char *port = slu_getenv("MASTER_PORT");
    uint32_t number;
    char next[8];
    bool six;

    if (host == NULL || port == NULL)
        return false;
    if (slu_parse_number(port, 1, 65535, &number) == 0) {
        snprintf(next, sizeof next, "%u", number < 65535 ? number + 1 : FIRST_FREE_PORT);
        port = next;
    }
    six = strchr(host, ':') != NULL;
    return snprintf(text, size, "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port) <
           (int)size;
}

/*
 * Takes the first host of "name", "name,..." or "name[01-04,...]". Returns false for another form.
 */
static bool take_first_host(const char *list, char *host, size_t size)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strspn(list, letters);
    const char *rest = list + length;
    const char *number = "";
    size_t digits = 0;

    if (*rest == '[') {
        number = rest + 1;
        digits = strspn(number, "0123456789");
        rest = strchr(number, ']');
        if (digits == 0 || rest == NULL || strchr(",-]", number[digits]) == NULL)
            return false;
        rest++;
    }
    if (length == 0 || (*rest != '\0' && *rest != ','))
        return false;
    return snprintf(host, size, "%.*s%.*s", (int)length, list, (int)digits, number) < (int)size;
}

/* Uses Slurm's reserved ports if there are any, else a port computed from job and step. */
static bool find_slurm_port(uint32_t *port)
{
    const char *reserved = slu_getenv("SLURM_STEP_RESV_PORTS");
    const char *job = slu_getenv("SLURM_JOB_ID");
    const char *step = slu_getenv("SLURM_STEP_ID");
    uint32_t numbers[2];
    char first[8];

    if (reserved != NULL) {
        snprintf(first, sizeof first, "%.*s", (int)strspn(reserved, "0123456789"), reserved);
        return slu_parse_number(first, 1, 65535, port) == 0;
    }
    if (job == NULL || slu_parse_number(job, 0, UINT32_MAX, &numbers[0]) < 0 || step == NULL ||
        slu_parse_number(step, 0, UINT32_MAX, &numbers[1]) < 0)
        return false;
    *port = SLURM_FIRST_PORT + (uint32_t)((UINT64_C(31) * numbers[0] + numbers[1]) % SLURM_PORTS);
    return true;
}

static bool find_slurm_root(char *text, size_t size)
{
    const char *list = slu_getenv("SLURM_STEP_NODELIST");
    char host[200];
    uint32_t port;

    return list != NULL && take_first_host(list, host, sizeof host) && find_slurm_port(&port) &&
           snprintf(text, size, "%s:%u", host, port) < (int)size;
}

int slu_launch_check_root(const char *root, const char *source)
{
    struct slu_host_port place;

    if (slu_host_port_parse(root, SLU_HOST_PORT_UNIX, &place) < 0)
        return slu_fail(EINVAL,
                        "%s is '%.128s', must be host:port, with a port of 1 to 65535, or @ and 16 "
                        "digits of a Unix socket",
                        source, root);
    return 0;
}

/*
 * Takes a text from the attributes, else from the environment, else "". *source is what named it.
 */
static int pick_text(const char *given, const char *field, enum slu_variable variable, size_t size,
                     const char **text, const char **source)
{
    int found = 1;

    if (given != NULL && strlen(given) >= size)
        return slu_misuse(EINVAL, "%s has %zu bytes, can have at most %zu", field, strlen(given),
                          size - 1);
    *text = given;
    *source = field;
    if (given == NULL || *given == '\0') {
        *text = "";
        *source = slu_env_name(variable);
        found = slu_env_text(variable, text);
    }
    if (found <= 0)
        *source = NULL;
    return found < 0 ? found : 0;
}

static int pick_texts(const struct sluice_exchange_attr *attr, struct slu_launch *launch)
{
    const char *root = "", *job = "", *job_source;
    int error = pick_text(attr->root, "sluice_exchange_attr.root", SLU_ENV_ROOT,
                          sizeof launch->root, &root, &launch->root_source);

    if (error == 0 && root[0] != '\0')
        error = slu_launch_check_root(root, launch->root_source);
    if (error == 0)
        error = pick_text(attr->job, "sluice_exchange_attr.job", SLU_ENV_JOB, sizeof launch->job,
                          &job, &job_source);
    if (error == 0)
        error =
            pick_text(attr->secret_file, "sluice_exchange_attr.secret_file", SLU_ENV_SECRET_FILE,
                      PATH_MAX, &launch->secret_file, &launch->secret_source);
    snprintf(launch->root, sizeof launch->root, "%s", root);
    snprintf(launch->job, sizeof launch->job, "%s", job);
    return error;
}

static bool is_given(const char *text)
{
    return text != NULL && *text != '\0';
}

/* Returns the name of an attribute that is set and only TCP can use, or NULL. */
static const char *find_tcp_attribute(const struct sluice_exchange_attr *attr)
{
    const struct {
        const char *name;
        bool given;
    } fields[] = {
        {"ranks", attr->ranks != 0},
        {"rank", attr->rank != 0},
        {"root", is_given(attr->root)},
        {"host_file", is_given(attr->host_file)},
        {"secret_file", is_given(attr->secret_file)},
        {"job", is_given(attr->job)},
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].given)
            return fields[i].name;
    return NULL;
}

/* Attributes are never ignored: one that only TCP can use is refused for other kinds. */
static int pick_kind(const struct sluice_exchange_attr *attr, struct slu_launch *launch)
{
    const char *field = find_tcp_attribute(attr);

    if (attr->kind > SLUICE_EXCHANGE_PMIX)
        return slu_misuse(EINVAL, "sluice_exchange_attr.kind is %u, must be AUTO, TCP or PMIX",
                          attr->kind);
    if (attr->kind == SLUICE_EXCHANGE_PMIX && field != NULL)
        return slu_misuse(EINVAL,
                          "sluice_exchange_attr.%s has no meaning over PMIx, whose server knows "
                          "all of it: leave it 0, or set kind to TCP or AUTO",
                          field);
    /* The choices of the variable are in the order of the enum. */
    launch->kind =
        attr->kind != SLUICE_EXCHANGE_AUTO ? attr->kind : slu_env_choice(SLU_ENV_EXCHANGE);
    if (launch->kind == SLUICE_EXCHANGE_PMIX && field != NULL)
        return slu_fail(EINVAL,
                        "SLUICE_EXCHANGE is pmix, over which sluice_exchange_attr.%s of the "
                        "program is of no use: set it to tcp, or unset it",
                        field);
    if (launch->kind == SLUICE_EXCHANGE_AUTO && field != NULL) {
        launch->kind = SLUICE_EXCHANGE_TCP;
        launch->tcp_field = field;
    }
    return 0;
}

static void set_pair(struct slu_launch *launch, uint32_t rank, uint32_t ranks)
{
    launch->rank = rank;
    launch->ranks = ranks;
}

/* Returns 1 if the program set rank and ranks, else 0. */
static int read_attributes(const struct sluice_exchange_attr *attr, struct slu_launch *launch)
{
    uint32_t rank = attr->rank == SLUICE_ZERO ? 0 : attr->rank;

    if (attr->ranks > SLUICE_MAX_RANKS)
        return slu_misuse(EINVAL, "sluice_exchange_attr.ranks is %u, must be in 1..%u", attr->ranks,
                          SLUICE_MAX_RANKS);
    if (attr->ranks != 0 && rank >= attr->ranks)
        return slu_misuse(EINVAL, "sluice_exchange_attr.rank is %u, must be below ranks, %u", rank,
                          attr->ranks);
    if (rank >= SLUICE_MAX_RANKS)
        return slu_misuse(EINVAL, "sluice_exchange_attr.rank is %u, must be below %u", rank,
                          SLUICE_MAX_RANKS);
    if (attr->ranks == 0)
        return 0;
    set_pair(launch, rank, attr->ranks);
    launch->rank_source = "sluice_exchange_attr.rank";
    snprintf(launch->source, sizeof launch->source, "attributes");
    return 1;
}

/*
 * Returns 1 if program or user named both rank and ranks; 0 if not both, which a host file can
 * complete.
 */
static int read_own(const struct sluice_exchange_attr *attr, struct slu_launch *launch)
{
    uint32_t rank = SLU_RANK_UNKNOWN, ranks = 0;
    int error = read_attributes(attr, launch);

    if (error != 0)
        return error;
    launch->rank_source = slu_env_name(SLU_ENV_RANK);
    if (attr->rank != 0) {
        rank = attr->rank == SLUICE_ZERO ? 0 : attr->rank;
        launch->rank_source = "sluice_exchange_attr.rank";
    } else {
        error = slu_env_number(SLU_ENV_RANK, &rank);
    }
    if (error >= 0)
        error = slu_env_number(SLU_ENV_RANKS, &ranks);
    if (error < 0)
        return error;
    if (rank != SLU_RANK_UNKNOWN && ranks != 0 && rank >= ranks)
        return slu_fail(EINVAL, "%s is %u, must be below SLUICE_RANKS, which is %u",
                        launch->rank_source, rank, ranks);
    set_pair(launch, rank, ranks);
    snprintf(launch->source, sizeof launch->source, "%s and SLUICE_RANKS", launch->rank_source);
    return rank != SLU_RANK_UNKNOWN && ranks != 0;
}

/* Returns 1, 0 if this launcher did not start the process, or -EINVAL. */
static int read_launcher(const struct launcher *launcher, struct pair *pair)
{
    const char *rank = slu_getenv(launcher->rank);
    const char *ranks = slu_getenv(launcher->ranks);
    char root[256];

    if (rank == NULL && ranks == NULL)
        return 0;
    if (launcher->root == find_torch_root &&
        (rank == NULL || ranks == NULL || !find_torch_root(root, sizeof root)))
        return 0;
    /* A batch script has no number of tasks if none was requested, and is not a task itself. */
    if (launcher->inherited && (rank == NULL || ranks == NULL))
        return 0;
    if (rank == NULL || ranks == NULL)
        return slu_fail(EINVAL, "%s is set, but %s is not", rank ? launcher->rank : launcher->ranks,
                        rank ? launcher->ranks : launcher->rank);
    if (slu_parse_number(ranks, 1, SLUICE_MAX_RANKS, &pair->ranks) < 0)
        return slu_fail(EINVAL, "%s is '%.64s', must be a number of 1 to %u", launcher->ranks,
                        ranks, SLUICE_MAX_RANKS);
    if (slu_parse_number(rank, 0, pair->ranks - 1, &pair->rank) < 0)
        return slu_fail(EINVAL, "%s is '%.64s', must be a number below %s, which is %u",
                        launcher->rank, rank, launcher->ranks, pair->ranks);
    return 1;
}

/* Reports launchers that contradict each other. The inner one is used, but may be a leftover. */
static void report_contradictions(const struct launcher *taken, const struct slu_launch *launch)
{
    const char *text = slu_getenv("PMIX_RANK");
    struct slu_text kept;
    struct pair pair;

    if (text != NULL && (slu_parse_number(text, 0, SLUICE_MAX_RANKS - 1, &pair.rank) < 0 ||
                         pair.rank != launch->rank))
        slu_log(SLUICE_LOG_WARN, "PMIX_RANK is %.64s, %s is %u, which is used", text, taken->rank,
                launch->rank);
    slu_text_save(&kept);
    for (const struct launcher *other = taken + 1; other < launchers + LAUNCHERS; other++)
        if (read_launcher(other, &pair) == 1 &&
            (pair.rank != launch->rank || pair.ranks != launch->ranks))
            slu_log(other->inherited ? SLUICE_LOG_INFO : SLUICE_LOG_WARN,
                    "%s and %s say rank %u of %u, %s and %s say %u of %u, which is used",
                    other->rank, other->ranks, pair.rank, pair.ranks, taken->rank, taken->ranks,
                    launch->rank, launch->ranks);
    slu_text_restore(&kept);
}

/* Takes the job from the launcher that named the rank. Those of others may differ between ranks. */
static void set_job(const struct launcher *launcher, struct slu_launch *launch)
{
    const char *job = slu_getenv("SLURM_JOB_ID");
    const char *step = slu_getenv("SLURM_STEP_ID");
    char text[128];
    size_t length;

    if (launch->job[0] != '\0')
        return;
    if (launcher->inherited && job != NULL && step != NULL) {
        snprintf(text, sizeof text, "%s.%s", job, step);
        job = text;
    } else {
        job = launcher->job != NULL ? slu_getenv(launcher->job) : NULL;
    }
    if (job == NULL)
        return;
    /* Keep the end of a long name, which has the numbers. */
    length = strlen(job);
    if (length >= sizeof launch->job) {
        job += length - (sizeof launch->job - 1);
        length = sizeof launch->job - 1;
    }
    memcpy(launch->job, job, length + 1);
}

/* Returns 1, 0 or -EINVAL. */
static int read_launchers(struct slu_launch *launch, const struct launcher **taken)
{
    for (const struct launcher *launcher = launchers; launcher < launchers + LAUNCHERS;
         launcher++) {
        struct pair pair;
        int found = read_launcher(launcher, &pair);

        if (found < 0)
            return found;
        if (found == 0)
            continue;
        set_pair(launch, pair.rank, pair.ranks);
        snprintf(launch->source, sizeof launch->source, "%s and %s", launcher->rank,
                 launcher->ranks);
        report_contradictions(launcher, launch);
        set_job(launcher, launch);
        launch->launcher = launcher->name;
        *taken = launcher;
        return 1;
    }
    return 0;
}

/*
 * Takes the root from this launcher, or from an outer one with the same ranks, such as Slurm with
 * PMI.
 */
static int find_root(const struct launcher *taken, struct slu_launch *launch)
{
    for (const struct launcher *launcher = taken; launcher < launchers + LAUNCHERS; launcher++) {
        struct pair pair;

        if (launcher->root != NULL && read_launcher(launcher, &pair) == 1 &&
            pair.rank == launch->rank && pair.ranks == launch->ranks &&
            launcher->root(launch->root, sizeof launch->root)) {
            launch->root_source = "the launcher";
            return slu_launch_check_root(launch->root, "the root that the launcher names");
        }
    }
    return 0;
}

/* The error of a program that no launcher started. */
static int fail_unknown(const struct slu_launch *launch)
{
    if (launch->rank != SLU_RANK_UNKNOWN)
        return slu_fail(EINVAL,
                        "%s is %u, but nothing says how many ranks there are: neither "
                        "sluice_exchange_attr.ranks nor SLUICE_RANKS nor a host file",
                        launch->rank_source, launch->rank);
    if (launch->ranks != 0)
        return slu_fail(EINVAL, "SLUICE_RANKS is set, but neither SLUICE_RANK nor a host file");
    if (slu_getenv("PMIX_RANK") != NULL && launch->tcp_field != NULL)
        return slu_fail(EINVAL,
                        "PMIX_RANK is set, but over PMIx sluice_exchange_attr.%s is of no use, and "
                        "over TCP nothing says how many ranks there are: set SLUICE_RANK and "
                        "SLUICE_RANKS",
                        launch->tcp_field);
    if (slu_getenv("PMIX_RANK") != NULL)
        return slu_fail(EINVAL, "PMIX_RANK is set, but only PMIx knows how many ranks there are: "
                                "set SLUICE_RANK and SLUICE_RANKS, or SLUICE_EXCHANGE=pmix");
    return slu_fail(ENOENT, "nothing says which rank this is: not the attributes, SLUICE_RANK and "
                            "SLUICE_RANKS, those of Open MPI, PMI, PMIx, torchrun or Slurm, nor "
                            "SLUICE_HOST_FILE; start it by mpirun, srun or sluice-launch, or "
                            "alone with SLUICE_RANK=0 SLUICE_RANKS=1");
}

static int read_host_file(const struct sluice_exchange_attr *attr, struct slu_launch *launch)
{
    const char *path = attr->host_file;
    const char *source = "sluice_exchange_attr.host_file";
    bool rootless = launch->root[0] == '\0';
    SLU_KEEP_ERRNO;
    int error = 0;

    if (path == NULL || *path == '\0') {
        path = NULL;
        source = slu_env_name(SLU_ENV_HOST_FILE);
        error = slu_env_text(SLU_ENV_HOST_FILE, &path);
    }
    if (error >= 0 && path != NULL)
        error = slu_name_source(slu_host_file_read(path, launch), source);
    else if (error == 0 && (launch->rank == SLU_RANK_UNKNOWN || launch->ranks == 0))
        error = fail_unknown(launch);
    if (rootless && launch->root[0] != '\0')
        launch->root_source = "the host file";
    return error < 0 ? error : 0;
}

int slu_launch_read(const struct sluice_exchange_attr *attr, struct slu_launch *launch)
{
    static const struct sluice_exchange_attr none;
    const struct launcher *taken = NULL;
    int found, error;

    attr = attr != NULL ? attr : &none;
    *launch = (struct slu_launch){.kind = SLUICE_EXCHANGE_AUTO, .secret_file = "", .listener = -1};
    slu_env_check_names();
    error = pick_kind(attr, launch);
    if (error == 0)
        error = pick_texts(attr, launch);
    if (error < 0 || launch->kind == SLUICE_EXCHANGE_PMIX)
        return error;
    found = read_own(attr, launch);
    /* A rank set by hand takes precedence over the launcher's PMIx server. */
    if (found > 0 && launch->kind == SLUICE_EXCHANGE_AUTO)
        launch->kind = SLUICE_EXCHANGE_TCP;
    if (found == 0 && launch->rank == SLU_RANK_UNKNOWN && launch->ranks == 0)
        found = read_launchers(launch, &taken);
    if (found < 0)
        return found;
    if (found == 0 && launch->kind == SLUICE_EXCHANGE_AUTO && launch->ranks == 0 &&
        launch->rank == SLU_RANK_UNKNOWN && slu_getenv("PMIX_RANK") != NULL) {
        set_pair(launch, 0, 0);
        launch->kind = SLUICE_EXCHANGE_PMIX;
        launch->launcher = "PMIx";
        return 0;
    }
    error = read_host_file(attr, launch);
    if (error == 0 && launch->root[0] == '\0' && taken != NULL)
        error = find_root(taken, launch);
    launch->pmi = launch->root[0] == '\0' && launch->ranks > 1 && taken != NULL && taken->pmi &&
                  slu_getenv("PMI_FD") != NULL;
    return error;
}
