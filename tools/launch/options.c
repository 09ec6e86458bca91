/* SPDX-License-Identifier: MIT */
/* The command line. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

#define SSH "ssh -T -x -o BatchMode=yes -o ConnectTimeout=20"
#define FAN 16
#define MOST_FAN 1000

static const char usage[] =
    "usage: sluice-launch -n N [option ...] [--] PROGRAM [ARGUMENT ...]\n"
    "       sluice-launch --hosts HOST[:N],... [option ...] [--] PROGRAM [ARGUMENT ...]\n"
    "       sluice-launch --hostfile FILE [option ...] [--] PROGRAM [ARGUMENT ...]\n"
    "\n"
    "Starts a program as the ranks of a job, each with the environment variables that its\n"
    "exchange needs, see sluice_environment(7). The manual page is sluice-launch(1).\n"
    "\n"
    "  -n N                 number of ranks, 1 to 65536\n"
    "  -b, --bind           bind each rank to one processor of those that the launcher may\n"
    "                       use, one after the other and then again from the first\n"
    "  -k, --keep-going     do not end the other ranks if one fails or is killed\n"
    "  -q                   do not mark lines of output with their rank\n"
    "  -x NAME[=VALUE], --env NAME[=VALUE]\n"
    "                       set a variable for all ranks; without a value, to that of here\n"
    "  --directory FOLDER   run the ranks in this folder\n"
    "\n"
    "On other hosts:\n"
    "\n"
    "  --hosts HOST[:N],... hosts, each with its number of ranks\n"
    "  --hostfile FILE      the same, one host a line: HOST, HOST:N or HOST slots=N\n"
    "  --ssh COMMAND        the command that reaches a host (" SSH ")\n"
    "  --path PATH          sluice-launch on the other hosts, if it is not where it is here\n"
    "  --root HOST[:PORT]   the address of rank 0 for the others, if not that of --hosts\n"
    "  --tree[=N]           reach N hosts from here, and from each of these N others (16)\n"
    "\n"
    "If a rank fails or is killed, the others are ended. The exit status is that of the\n"
    "first rank that failed, or 128 plus the signal if it was killed; 0 if none failed.\n"
    "SIGHUP, SIGINT and SIGTERM are passed on. A rank that still runs 5 s after SIGINT gets\n"
    "SIGTERM, and 5 s later SIGKILL; a second SIGINT kills all at once. If the launcher is\n"
    "killed, so are all ranks. If a host is lost, the others are ended within 10 s.\n"
    "\n"
    "With --keep-going each failed rank is named at once, and the others go on. The exit\n"
    "status is 0 only if no rank failed; 3 if ranks were killed and all others exited with 0.\n"
    "\n"
    "The ranks get a secret. If SLUICE_SECRET_FILE is set it is kept: name a file of your\n"
    "own, or leave it empty for no secret.\n";

struct words {
    char **list; /* of the command line */
    int at, count;
    const char *hosts, *host_file;
    uint32_t ranks;
    bool counted;
    const char **environment;
    uint32_t environment_count;
};

/* Returns the value of an option, which is the next word. */
static const char *next_word(struct words *words, const char *what)
{
    const char *option = words->list[words->at];

    if (words->at + 1 >= words->count)
        die(STATUS_ARGUMENTS, "%s needs %s", option, what);
    return words->list[++words->at];
}

/* Returns the value of "--name=value" or "--name value", or NULL if this is another option. */
static const char *value_of(struct words *words, const char *name, const char *what)
{
    const char *word = words->list[words->at];
    size_t length = strlen(name);

    if (strcmp(word, name) == 0)
        return next_word(words, what);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static void read_ranks(struct words *words, const char *text)
{
    words->counted = true;
    words->ranks = read_count(text);
    if (words->ranks == 0)
        die(STATUS_ARGUMENTS, "how many ranks must be 1 to %d, not '%s'", MOST_RANKS, text);
}

static void add_variable(struct words *words, const char *text)
{
    const char **list;
    char *variable;
    const char *value = strchr(text, '=') == NULL ? getenv(text) : "";
    size_t name = strcspn(text, "=");

    if (name == 0 || strcspn(text, " \t\n") < name)
        die(STATUS_ARGUMENTS, "-x needs a name without blanks, not '%.*s'",
            (int)(name == 0 ? strlen(text) : name), text);
    if (value == NULL)
        die(STATUS_ARGUMENTS, "-x %s: this variable is not set here", text);
    if (asprintf(&variable, strchr(text, '=') == NULL ? "%s=%s" : "%s%s", text, value) < 0)
        die(STATUS_ARGUMENTS, "no memory for the environment");
    list = realloc(words->environment, (words->environment_count + 2) * sizeof *list);
    if (list == NULL)
        die(STATUS_ARGUMENTS, "no memory for the environment");
    words->environment = list;
    words->environment[words->environment_count++] = variable;
    words->environment[words->environment_count] = NULL;
}

static void read_fan(struct job *job, const char *text)
{
    job->fan = text[0] == '\0' ? FAN : read_count(text);
    if (job->fan < 2 || job->fan > MOST_FAN)
        die(STATUS_ARGUMENTS, "--tree must be 2 to %d, not '%s'", MOST_FAN, text);
}

/* Divides "host", "host:port" or "[1:2::3]:port". */
static void read_root(struct launcher *launcher, const char *text)
{
    const char *close = text[0] == '[' ? strchr(text, ']') : NULL, *colon = strchr(text, ':');
    size_t length = strlen(text);

    if (close != NULL)
        colon = close[1] == ':' ? close + 1 : NULL;
    else if (colon != NULL && colon != strrchr(text, ':'))
        colon = NULL; /* an IPv6 address */
    if (colon != NULL)
        length = (size_t)(colon - text);
    if (close != NULL)
        length = (size_t)(close - text - 1);
    launcher->root_host = strndup(text + (close != NULL), length);
    launcher->root_port = colon != NULL ? colon + 1 : NULL;
    if (length == 0 || (close != NULL && close[1] != '\0' && colon == NULL) ||
        (colon != NULL && (read_count(colon + 1) == 0 || read_count(colon + 1) > 65535)))
        die(STATUS_ARGUMENTS, "--root must be a host, or host:port, not '%s'", text);
}

static bool is_one_of(const char *word, const char *first, const char *second)
{
    return strcmp(word, first) == 0 || strcmp(word, second) == 0;
}

/* Reads an option with a value. Returns false if it is none of these. */
static bool read_valued(struct launcher *launcher, struct words *words)
{
    const char *word = words->list[words->at], *value;

    if (strcmp(word, "-n") == 0)
        read_ranks(words, next_word(words, "a number"));
    else if (strcmp(word, "-np") == 0)
        die(STATUS_ARGUMENTS, "how many ranks is -n N here, not -np");
    else if (strncmp(word, "-n", 2) == 0)
        read_ranks(words, word + 2);
    else if (strcmp(word, "-x") == 0)
        add_variable(words, next_word(words, "a name"));
    else if ((value = value_of(words, "--env", "a name")) != NULL)
        add_variable(words, value);
    else if ((value = value_of(words, "--hosts", "hosts")) != NULL)
        words->hosts = value;
    else if ((value = value_of(words, "--hostfile", "a file")) != NULL)
        words->host_file = value;
    else if ((value = value_of(words, "--ssh", "a command")) != NULL)
        launcher->job.ssh = value;
    else if ((value = value_of(words, "--path", "a path")) != NULL)
        launcher->job.path = value;
    else if ((value = value_of(words, "--root", "a host")) != NULL)
        read_root(launcher, value);
    else if ((value = value_of(words, "--directory", "a folder")) != NULL)
        launcher->job.directory = value;
    else if (strcmp(word, "--tree") == 0)
        read_fan(&launcher->job, "");
    else if (strncmp(word, "--tree=", 7) == 0)
        read_fan(&launcher->job, word + 7);
    else
        return false;
    return true;
}

static void read_options(struct launcher *launcher, struct words *words)
{
    for (; words->at < words->count && words->list[words->at][0] == '-'; words->at++) {
        const char *word = words->list[words->at];

        if (strcmp(word, "--") == 0) {
            words->at++;
            return;
        }
        if (is_one_of(word, "-b", "--bind"))
            launcher->job.bind = true;
        else if (is_one_of(word, "-k", "--keep-going"))
            launcher->keep_going = true;
        else if (strcmp(word, "-q") == 0)
            launcher->job.plain = true;
        else if (strcmp(word, "--remote") == 0 && words->count == 2)
            launcher->remote = true;
        else if (strcmp(word, "--help") == 0)
            exit(fputs(usage, stdout) < 0 || fflush(stdout) != 0);
        else if (!read_valued(launcher, words))
            die(STATUS_ARGUMENTS, "unknown option %s; see --help", word);
    }
}

/* Ranks of other hosts get the variables of sluice, and those of -x, and no others from here. */
static void pass_environment(struct words *words)
{
    extern char **environ;
    uint32_t named = words->environment_count;
    char **variables = environ;

    for (; *variables != NULL; variables++) {
        size_t length = strcspn(*variables, "=") + 1;
        bool given = strncmp(*variables, "SLUICE_", 7) != 0;

        for (uint32_t i = 0; i < named && !given; i++)
            given = strncmp(words->environment[i], *variables, length) == 0;
        if (!given)
            add_variable(words, *variables);
    }
}

static void read_hosts(struct launcher *launcher, struct words *words)
{
    struct job *job = &launcher->job;

    if (words->hosts != NULL && words->host_file != NULL)
        die(STATUS_ARGUMENTS, "give --hosts or --hostfile, not both");
    if (words->hosts != NULL)
        places_read_list(job, words->hosts, words->ranks);
    else
        places_read_file(job, words->host_file, words->ranks);
    if (job->directory == NULL)
        job->directory = getcwd(NULL, 0);
    if (job->directory == NULL || job->directory[0] != '/')
        die(STATUS_ARGUMENTS, "--directory must be an absolute path with --hosts");
    if (job->ssh == NULL)
        job->ssh = SSH;
    if (job->ssh[strspn(job->ssh, " \t")] == '\0')
        die(STATUS_ARGUMENTS, "--ssh needs a command");
    if (job->path == NULL)
        job->path = realpath("/proc/self/exe", NULL);
    if (job->path == NULL)
        die(STATUS_ARGUMENTS, "where sluice-launch is cannot be found: %s; give --path",
            strerror(errno));
    pass_environment(words);
}

static void check_hostless(const struct launcher *launcher)
{
    const char *option = launcher->job.ssh != NULL     ? "--ssh"
                         : launcher->job.path != NULL  ? "--path"
                         : launcher->root_host != NULL ? "--root"
                         : launcher->job.fan != 0      ? "--tree"
                                                       : NULL;

    if (option != NULL)
        die(STATUS_ARGUMENTS, "%s needs --hosts or --hostfile", option);
}

void options_read(struct launcher *launcher, int count, char **list)
{
    static struct place here = {.host = ""};
    struct words words = {.list = list, .at = 1, .count = count};
    struct job *job = &launcher->job;

    words.environment = calloc(1, sizeof *words.environment);
    if (words.environment == NULL)
        die(STATUS_ARGUMENTS, "no memory");
    read_options(launcher, &words);
    if (launcher->remote)
        return;
    if (!words.counted && words.hosts == NULL && words.host_file == NULL)
        die(STATUS_ARGUMENTS,
            "how many ranks must be given: with -n, 1 to %d, or with --hosts or --hostfile",
            MOST_RANKS);
    if (words.at >= count)
        die(STATUS_ARGUMENTS, "which program must be given");
    if (words.hosts != NULL || words.host_file != NULL) {
        read_hosts(launcher, &words);
    } else {
        check_hostless(launcher);
        here.count = job->ranks = words.ranks;
        job->places = &here;
        job->place_count = 1;
        for (uint32_t i = 0; i < words.environment_count; i++)
            putenv((char *)words.environment[i]);
    }
    job->environment = words.environment;
    job->command = (const char **)list + words.at;
}
