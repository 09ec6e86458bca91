/* SPDX-License-Identifier: MIT */
/*
 * Host files: what they define, the line that an error names, and that a complete file makes other
 * settings unnecessary.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/suite.h"
#include "exchange/exchange.h"

#ifdef HAVE_JANSSON

#define HOST(name, port, rank) \
    "{\"hostname\":\"" name "\",\"port\":" port ",\"ibdev\":\"mlx5_0\",\"rankid\":" rank "}"

static unsigned warnings;
static char last_line[512];

static void keep_line(uint32_t level, const char *line, void *user)
{
    (void)user;
    warnings += level == SLUICE_LOG_WARN;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

static char path[64];

static void write_file(const char *text)
{
    snprintf(path, sizeof(path), "/tmp/sluice-hosts.XXXXXX");
    int fd = mkstemp(path);
    require(fd >= 0, "%s", path);
    require(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
    close(fd);
    warnings = 0;
    require_ok(sluice_log_set(SLUICE_LOG_WARN, keep_line, NULL));
}

/* Reads it as rank of ranks, both of which may be unknown. */
static int read_file(const char *text, uint32_t rank, uint32_t ranks, struct slu_launch *launch)
{
    write_file(text);
    *launch = (struct slu_launch){
        .rank = rank, .ranks = ranks, .source = "the test", .rank_source = "SLUICE_RANK"};
    int result = slu_host_file_read(path, launch);
    unlink(path);
    return result;
}

static void refuse(const char *text, const char *words)
{
    struct slu_launch launch;
    require_error(read_file(text, 0, 0, &launch), -EINVAL, words);
}

TEST(right_file)
{
    struct slu_launch launch;
    unsetenv("SLUICE_DEVICE");
    require_ok(read_file("{\"hosts\":[" HOST("alpha", "9001", "0") ",\n" HOST(
                             "beta", "9002", "1") ",{\"hostname\":\"gamma\",\"port\":65535,"
                                                  "\"rankid\":2,\"comment\":\"spare\"}]}\n",
                         1, 0, &launch));
    require(launch.rank == 1 && launch.ranks == 3, "%u of %u", launch.rank, launch.ranks);
    require(strcmp(launch.root, "alpha:9001") == 0, "%s", launch.root);
    require(strcmp(launch.device, "mlx5_0") == 0, "%s", launch.device);
    require(strstr(launch.source, "host file"), "%s", launch.source);
    require(warnings == 0, "%s", last_line);
}

TEST(any_order)
{
    struct slu_launch launch;
    require_ok(read_file(
        "{\"hosts\":[" HOST("c", "3", "2") "," HOST("a", "1", "0") "," HOST("b", "2", "1") "]}", 2,
        3, &launch));
    require(strcmp(launch.root, "a:1") == 0, "%s", launch.root);
    require(strcmp(launch.source, "the test") == 0, "%s", launch.source);
}

TEST(device_of_the_environment)
{
    struct slu_launch launch;
    setenv("SLUICE_DEVICE", "soft", 1);
    require_ok(read_file("{\"hosts\":[" HOST("a", "1", "0") "]}", 0, 1, &launch));
    require_ok(read_file("{\"hosts\":[" HOST("a", "1", "0") "],\"version\":1,\"later\":{}}", 0, 1,
                         &launch));
    require(launch.device[0] == '\0', "%s", launch.device);
    unsetenv("SLUICE_DEVICE");
    require_ok(
        read_file("{\"hosts\":[{\"hostname\":\"a\",\"port\":1,\"rankid\":0}]}", 0, 1, &launch));
    require(launch.device[0] == '\0', "%s", launch.device);
}

/* The device that the exchange returns: NAME or NAME:PORT as it stands in the file. */
TEST(device_of_the_exchange)
{
    static const char *const devices[] = {"mlx5_0", "mlx5_1:2", "", NULL};
    for (size_t i = 0; i < COUNT(devices); i++) {
        struct sluice_exchange_info info = {.size = sizeof(info)};
        struct sluice_exchange_attr attr = {
            .size = sizeof(attr), .kind = SLUICE_EXCHANGE_TCP, .ranks = 1, .host_file = path};
        char ibdev[40] = "", text[160];
        if (devices[i]) {
            snprintf(ibdev, sizeof(ibdev), ",\"ibdev\":\"%s\"", devices[i]);
        }
        snprintf(text, sizeof(text), "{\"hosts\":[{\"hostname\":\"a\",\"port\":1,\"rankid\":0%s}]}",
                 ibdev);
        write_file(text);
        struct sluice_exchange *exchange = made(sluice_exchange_open(&attr, SLUICE_S(10)));
        require_ok(sluice_exchange_query(exchange, &info));
        require(strcmp(info.device, devices[i] ? devices[i] : "") == 0, "'%s'", info.device);
        sluice_exchange_close(exchange);
        setenv("SLUICE_DEVICE", "soft", 1);
        exchange = made(sluice_exchange_open(&attr, SLUICE_S(10)));
        require_ok(sluice_exchange_query(exchange, &info));
        require(info.device[0] == '\0', "'%s'", info.device);
        sluice_exchange_close(exchange);
        unsetenv("SLUICE_DEVICE");
        unlink(path);
    }
}

TEST(own_host)
{
    struct slu_launch launch;
    char own[200] = "";
    char text[1024];
    require(gethostname(own, sizeof(own) - 1) == 0, "gethostname");
    snprintf(text, sizeof(text),
             "{\"hosts\":[" HOST("no-such", "1", "0") "," HOST("%s", "2", "1") "]}", own);
    require_ok(read_file(text, SLU_RANK_UNKNOWN, 0, &launch));
    require(launch.rank == 1 && launch.ranks == 2, "%u of %u", launch.rank, launch.ranks);
    require(strstr(launch.source, "name of this host"), "%s", launch.source);
    own[strcspn(own, ".")] = '\0';
    snprintf(text, sizeof(text), "{\"hosts\":[" HOST("%s.some.where", "2", "0") "]}", own);
    char full[200] = "";
    gethostname(full, sizeof(full) - 1);
    if (!strchr(full, '.')) {
        require_ok(read_file(text, SLU_RANK_UNKNOWN, 1, &launch));
    }
    snprintf(text, sizeof(text), "{\"hosts\":[" HOST("%s", "1", "0") "," HOST("%s", "2", "1") "]}",
             own, own);
    require_error(read_file(text, SLU_RANK_UNKNOWN, 0, &launch), -EINVAL,
                  "2 of its hosts "
                  "SLUICE_RANK");
    require_error(
        read_file("{\"hosts\":[" HOST("no-such", "1", "0") "]}", SLU_RANK_UNKNOWN, 0, &launch),
        -EINVAL, "0 of its hosts SLUICE_RANK");
}

TEST(root_stays)
{
    struct slu_launch launch = {.rank = 0, .ranks = 1, .root = "given:7"};
    write_file("{\"hosts\":[" HOST("a", "1", "0") "]}");
    require_ok(slu_host_file_read(path, &launch));
    unlink(path);
    require(strcmp(launch.root, "given:7") == 0, "%s", launch.root);
}

TEST(contradictions)
{
    struct slu_launch launch;
    const char *two = "{\"hosts\":[" HOST("a", "1", "0") "," HOST("b", "2", "1") "]}";
    require_error(read_file(two, 0, 3, &launch), -EINVAL, "2 hosts the test 3 ranks");
    require_error(read_file(two, 2, 0, &launch), -EINVAL, "SLUICE_RANK is 2 2 hosts");
}

TEST(no_file)
{
    struct slu_launch launch = {.rank = 0};
    require_error(slu_host_file_read("/no/such/file", &launch), -EINVAL, "/no/such/file read");
    require_error(slu_host_file_read("/tmp", &launch), -EINVAL, "/tmp");
    require_error(slu_host_file_read("/dev/null", &launch), -EINVAL, "/dev/null");
    snprintf(path, sizeof(path), "/tmp/sluice-hosts-%d", getpid());
    require(mkfifo(path, 0600) == 0, "%s: %m", path);
    int result = slu_host_file_read(path, &launch);
    unlink(path);
    require_error(result, -EINVAL, path);
}

TEST(no_json)
{
    refuse("", ":1:");
    refuse("hosts: a, b\n", ":1:");
    refuse("{\"hosts\":\n[" HOST("a", "1", "0") "\n" HOST("b", "2", "1") "]}", ":3:");
    refuse("{\"hosts\":[],\"hosts\":[]}", "duplicate");
    refuse("{\"version\":2,\"hosts\":[" HOST("a", "1", "0") "]}",
           "from version 2 on reads version 1");
    refuse("{\"version\":0,\"hosts\":[" HOST("a", "1", "0") "]}", "\"version\" from 1 on");
    refuse("{\"version\":\"1\",\"hosts\":[" HOST("a", "1", "0") "]}", "\"version\" integer");
    refuse("[]", "\"hosts\"");
    refuse("{\"hosts\":{}}", "\"hosts\"");
    refuse("{\"host\":[]}", "\"hosts\"");
    refuse("{\"hosts\":[]}", "0 hosts 65536");
}

/* The third entry begins in line 5, whatever stands in those before. */
#define BEFORE                                                  \
    "{\"comment\": [\"hosts\", [1,\n 2]], \"hosts\": [\n" HOST( \
        "a", "1",                                               \
        "0") ",\n{\"comm"                                       \
             "ent\":\"}],[{\\\"hosts\\\": \", \"hostname\":\"b\",\"port\":2, \"rankid\":1},\n"

TEST(lines)
{
    refuse(BEFORE HOST("", "3", "2") "]}", ":5: rank 2 \"hostname\"");
    refuse(BEFORE "\n\n{\"port\":3,\"rankid\":2}]}", ":7: rank 2 \"hostname\"");
    refuse("{\"hosts\":[" HOST("a", "1", "0") ",\n" HOST("::[", "3", "1") "]}",
           ":2: rank 1 \"hostname\"");
    refuse(BEFORE HOST("c", "0", "2") "]}", ":5: rank 2 \"port\" 65535");
    refuse(BEFORE HOST("c", "65536", "2") "]}", ":5: rank 2 \"port\"");
    refuse(BEFORE HOST("c", "\"3\"", "2") "]}", ":5: rank 2 \"port\"");
    refuse(BEFORE HOST("c", "3.0", "2") "]}", ":5: rank 2 \"port\"");
    refuse(BEFORE HOST("c", "3", "\"2\"") "]}", ":5: \"rankid\"");
    refuse(BEFORE HOST("c", "3", "-1") "]}", ":5: \"rankid\"");
    refuse(BEFORE HOST("c", "3", "65536") "]}", ":5: \"rankid\"");
    refuse(BEFORE "{\"hostname\":\"c\",\"port\":3}]}", ":5: \"rankid\"");
    refuse(BEFORE "{\"hostname\":\"c\",\"port\":3,\"rankid\":2,\"ibdev\":1}]}",
           ":5: rank 2 \"ibdev\"");
    refuse(BEFORE "3," HOST("d", "3", "3") "]}", ":5: object");
    refuse("{\"comment\": \"hosts\",\n\"more\": [\n{}],\n\"hosts\" : [\n" HOST("", "3", "0") "]}",
           ":5: rank 0 \"hostname\"");
    refuse(BEFORE "3,\n" HOST("d", "3", "3") "]}", ":5: object");
    refuse(BEFORE "[" HOST("d", "3", "3") "]]}", ":5: object");
}

TEST(ranks)
{
    refuse("{\"hosts\":[\n" HOST("a", "1", "1") ",\n" HOST("b", "2", "2") "]}",
           ":2: rank 1 first rank 0");
    refuse(BEFORE HOST("c", "3", "3") "]}", ":5: rank 3 no host has rank 2");
    refuse(BEFORE HOST("c", "3", "1") "]}", ":5: rank 1 line 4 the same rank");
    refuse(BEFORE HOST("c", "3", "0") "]}", ":5: rank 0 line 3 the same rank");
}

TEST(unknown_keys)
{
    struct slu_launch launch;
    require_ok(read_file("{\"hosts\":[\n{\"hostname\":\"a\",\"port\":1,\"rankid\":0,\"rank\":1}]}",
                         0, 0, &launch));
    require(warnings == 1 && strstr(last_line, ":2:") && strstr(last_line, "\"rank\""), "%u, %s",
            warnings, last_line);
}

static void expect_rank(const struct sluice_exchange_attr *attr, uint32_t rank, const char *source)
{
    struct slu_launch launch;
    require_ok(slu_launch_read(attr, &launch));
    require(launch.rank == rank && launch.ranks == 2, "%u of %u", launch.rank, launch.ranks);
    require_result(launch.kind, SLUICE_EXCHANGE_TCP);
    require(strstr(launch.source, source), "%s", launch.source);
}

/* The program's rank overrides that of a launcher, which is rank 0 here. */
static void by_attributes(void)
{
    struct sluice_exchange_attr attr = {.size = sizeof(attr), .host_file = path};
    struct slu_launch launch;
    expect_rank(&attr, 0, "PMI_RANK");
    attr.rank = 1;
    expect_rank(&attr, 1, "sluice_exchange_attr.rank and host file");
    setenv("PMI_RANK", "1", 1);
    attr.rank = SLUICE_ZERO;
    expect_rank(&attr, 0, "sluice_exchange_attr.rank and host file");
    attr.ranks = 2;
    expect_rank(&attr, 0, "attributes");
    attr.rank = 0;
    expect_rank(&attr, 0, "attributes");
    attr.ranks = 0;
    expect_rank(&attr, 1, "PMI_RANK");
    attr.rank = 2;
    require_error(slu_launch_read(&attr, &launch), -EINVAL,
                  "sluice_exchange_attr.rank is 2 only 2 hosts");
    /* The same, wherever the name of the host file comes from. */
    attr.host_file = NULL;
    setenv("SLUICE_HOST_FILE", path, 1);
    attr.rank = SLUICE_ZERO;
    expect_rank(&attr, 0, "sluice_exchange_attr.rank and host file");
    setenv("PMI_RANK", "0", 1);
}

/* The same with the variable, through all layers. */
TEST(by_environment)
{
    static const char *const others[] = {"OMPI_COMM_WORLD_RANK",
                                         "OMPI_COMM_WORLD_SIZE",
                                         "PMI_RANK",
                                         "PMI_SIZE",
                                         "PMIX_RANK",
                                         "RANK",
                                         "SLURM_PROCID",
                                         "SLUICE_RANKS",
                                         "SLUICE_EXCHANGE",
                                         "SLUICE_ROOT"};
    struct slu_launch launch;
    for (size_t i = 0; i < COUNT(others); i++) {
        unsetenv(others[i]);
    }
    write_file("{\"hosts\":[" HOST("a", "1", "0") "," HOST("b", "2", "1") "]}");
    setenv("SLUICE_HOST_FILE", path, 1);
    setenv("SLUICE_RANK", "1", 1);
    require_ok(slu_launch_read(NULL, &launch));
    require(launch.rank == 1 && launch.ranks == 2, "%u of %u", launch.rank, launch.ranks);
    require(strcmp(launch.root, "a:1") == 0, "%s", launch.root);
    unsetenv("SLUICE_RANK");
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    require_ok(slu_launch_read(NULL, &launch));
    require(launch.rank == 0 && strcmp(launch.root, "a:1") == 0, "%u, %s", launch.rank,
            launch.root);
    unsetenv("SLUICE_HOST_FILE");
    by_attributes();
    setenv("SLUICE_HOST_FILE", path, 1);
    setenv("PMI_SIZE", "3", 1);
    require_error(slu_launch_read(NULL, &launch), -EINVAL, "2 hosts PMI_RANK 3 ranks");
    unlink(path);
}

int main(void)
{
    return RUN_GROUPS("host_file", {"host file", WIRE_SELF, 30});
}

#else

int main(void)
{
    puts("1..0 # SKIP built without jansson");
    return 0;
}

#endif
