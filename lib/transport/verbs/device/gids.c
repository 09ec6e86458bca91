/* SPDX-License-Identifier: MIT */
/*
 * The GID table of a port: the entry that was asked for or the best one, and others that an
 * endpoint offers. Guarantee: no entry is chosen that belongs to an interface of another network
 * namespace, or to an address that its interface has not, unless the caller names it.
 */
#include "config.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/device/device.h"

/* Scopes of GIDs in ascending order: how far their packets are routed. */
enum scope { SCOPE_LOOPBACK, SCOPE_LINK, SCOPE_IPV6, SCOPE_IPV4, SCOPES };

static enum scope scope_of_ipv4(const uint8_t ip[4])
{
    if (ip[0] == 127)
        return SCOPE_LOOPBACK;
    return ip[0] == 169 && ip[1] == 254 ? SCOPE_LINK : SCOPE_IPV4;
}

static enum scope scope_of(const union ibv_gid *gid)
{
    struct in6_addr address;

    if (slu_verbs_gid_is_ipv4(gid->raw))
        return scope_of_ipv4(gid->raw + 12);
    memcpy(&address, gid->raw, sizeof address);
    if (IN6_IS_ADDR_LOOPBACK(&address))
        return SCOPE_LOOPBACK;
    return IN6_IS_ADDR_LINKLOCAL(&address) ? SCOPE_LINK : SCOPE_IPV6;
}

/*
 * Whose entry of the table it is. If devices are shared between network namespaces, the table also
 * has entries of others, and their interfaces have numbers that may mean another interface here.
 */
enum owner {
    OWNER_OTHER,   /* an interface, or an address, that this namespace has not */
    OWNER_UNKNOWN, /* the kernel does not say enough, or the interface is down */
    OWNER_US
};

/* Returns the name of an interface of this network namespace, or NULL. */
static const char *name_of(const struct ifaddrs *list, uint32_t index)
{
    for (; list && index; list = list->ifa_next) {
        const struct sockaddr_ll *link = (const void *)list->ifa_addr;

        if (link && link->sll_family == AF_PACKET && (uint32_t)link->sll_ifindex == index)
            return list->ifa_name;
    }
    return NULL;
}

/* An address of IPv4 may have a label, such as "eth0:1". */
static bool is_of(const struct ifaddrs *address, const char *name)
{
    size_t length = strcspn(address->ifa_name, ":");

    return !name || (strlen(name) == length && memcmp(name, address->ifa_name, length) == 0);
}

/* Writes an address as a GID. Returns false for one that is neither IPv4 nor IPv6. */
static bool gid_of(const struct sockaddr *address, uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    const struct sockaddr_in *ipv4 = (const void *)address;
    const struct sockaddr_in6 *ipv6 = (const void *)address;

    if (!address || (address->sa_family != AF_INET && address->sa_family != AF_INET6))
        return false;
    if (address->sa_family == AF_INET6) {
        memcpy(gid, &ipv6->sin6_addr, 16);
        return true;
    }
    memcpy(gid, mapped, sizeof mapped);
    memcpy(gid + sizeof mapped, &ipv4->sin_addr, 4);
    return true;
}

/* Returns how many of the first bits are equal, of at most 128. */
static uint8_t equal_bits(const uint8_t a[16], const uint8_t b[16])
{
    uint8_t bits = 0;

    while (bits < 128 && ((a[bits / 8] ^ b[bits / 8]) & (0x80 >> bits % 8)) == 0)
        bits++;
    return bits;
}

/* Returns the length of the prefix of a netmask, counted in a GID. */
static uint8_t prefix_of(const struct sockaddr *netmask)
{
    static const uint8_t ones[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    uint8_t mask[16];

    if (!gid_of(netmask, mask))
        return 0;
    if (netmask->sa_family == AF_INET)
        memcpy(mask, ones, 12);
    return equal_bits(mask, ones);
}

/* Returns the entry of the list that has the address of a GID, or NULL. name: NULL for any. */
static const struct ifaddrs *find_address(const struct ifaddrs *list, const char *name,
                                          const uint8_t gid[16])
{
    uint8_t found[16];

    while (list && !(is_of(list, name) && gid_of(list->ifa_addr, found) &&
                     memcmp(found, gid, sizeof found) == 0))
        list = list->ifa_next;
    return list;
}

/*
 * Returns whose the entry is. list: the addresses of this network namespace, or NULL if they cannot
 * be read. A default GID is link-local and made of the interface's hardware address, so it need not
 * be an address of the interface.
 */
static enum owner owner_of(const struct ifaddrs *list, const struct ibv_gid_entry *entry,
                           uint8_t *prefix)
{
    const char *name = name_of(list, entry->ndev_ifindex);
    const struct ifaddrs *address;

    *prefix = 0;
    /* Every namespace has the addresses of the loopback interface. */
    if (!list || entry->gid_type == IBV_GID_TYPE_IB || scope_of(&entry->gid) == SCOPE_LOOPBACK)
        return OWNER_UNKNOWN;
    if (entry->ndev_ifindex && !name)
        return OWNER_OTHER;
    address = find_address(list, name, entry->gid.raw);
    if (address) {
        *prefix = prefix_of(address->ifa_netmask);
        return (address->ifa_flags & IFF_UP) != 0 ? OWNER_US : OWNER_UNKNOWN;
    }
    return name && scope_of(&entry->gid) != SCOPE_LINK ? OWNER_OTHER : OWNER_UNKNOWN;
}

/* An entry with what is known of it. */
struct candidate {
    const struct ibv_gid_entry *entry;
    enum owner owner;
    uint8_t prefix;
};

/* RoCE v1 stays within one Ethernet segment, so any v2 address is preferred to it. */
static int rank_entry(const struct ibv_gid_entry *entry)
{
    switch (entry->gid_type) {
    case IBV_GID_TYPE_ROCE_V2:
        return 1 + SCOPES + (int)scope_of(&entry->gid);
    case IBV_GID_TYPE_ROCE_V1:
        return 1 + (int)scope_of(&entry->gid);
    default:
        return 1; /* InfiniBand: the first one was assigned by the subnet manager */
    }
}

/* An entry of ours goes before any that may be ours. */
static int rank_gid(const struct candidate *candidate)
{
    if (candidate->owner == OWNER_OTHER)
        return 0;
    return rank_entry(candidate->entry) + (candidate->owner == OWNER_US ? 1 + 2 * SCOPES : 0);
}

/* Returns the entry of an index of the port, or none. */
static struct candidate given_gid(const struct ifaddrs *list, const struct ibv_gid_entry *entries,
                                  size_t count, uint8_t port, uint32_t index)
{
    struct candidate given = {.entry = NULL};

    for (size_t i = 0; i < count && !given.entry; i++) {
        if (entries[i].port_num != port || entries[i].gid_index != index)
            continue;
        given.entry = &entries[i];
        given.owner = owner_of(list, given.entry, &given.prefix);
    }
    return given;
}

/*
 * Returns the GID with the highest rank, or none. Of equal ones it takes the lowest index, which
 * does not change when addresses are added.
 */
static struct candidate best_gid(const struct ifaddrs *list, const struct ibv_gid_entry *entries,
                                 size_t count, uint8_t port)
{
    struct candidate best = {.entry = NULL};
    int best_rank = 0;

    for (size_t i = 0; i < count; i++) {
        struct candidate next = {.entry = &entries[i]};
        int rank;

        /* An address vector has 8 bits for the index. */
        if (entries[i].port_num != port || entries[i].gid_index > UINT8_MAX)
            continue;
        next.owner = owner_of(list, next.entry, &next.prefix);
        rank = rank_gid(&next);
        if (rank > best_rank || (best.entry && rank == best_rank && rank > 0 &&
                                 next.entry->gid_index < best.entry->gid_index)) {
            best = next;
            best_rank = rank;
        }
    }
    return best;
}

/*
 * Lists further GIDs of ours by which packets are routed, in the order of the table: a peer may be
 * in the subnet of one of them alone.
 */
static void list_others(const struct ifaddrs *list, const struct ibv_gid_entry *entries,
                        size_t count, struct slu_verbs_path *path)
{
    for (size_t i = 0; i < count && path->other_gids < SLU_ENDPOINT_GIDS; i++) {
        const struct ibv_gid_entry *entry = &entries[i];
        uint8_t prefix;

        if (entry->port_num != path->gid.port_num || entry->gid_index > UINT8_MAX ||
            entry->gid_index == path->gid.gid_index || entry->gid_type != IBV_GID_TYPE_ROCE_V2 ||
            scope_of(&entry->gid) < SCOPE_IPV6 || owner_of(list, entry, &prefix) != OWNER_US)
            continue;
        path->others[path->other_gids++] = (struct slu_verbs_other_gid){*entry, prefix};
    }
}

/* Writes "0 RoCE v2 fe80::1; 1 RoCE v2 192.0.2.1", as far as there is room. */
static void list_gids(const struct ibv_gid_entry *entries, size_t count, uint8_t port, char *text,
                      size_t size)
{
    size_t used = (size_t)snprintf(text, size, "nothing");
    bool first = true;

    for (size_t i = 0; i < count; i++) {
        char gid[SLU_VERBS_ADDRESS_CHARS];

        if (entries[i].port_num != port)
            continue;
        if (!first && used + sizeof gid + 16 > size) {
            snprintf(text + used, size - used, "; ...");
            return;
        }
        slu_verbs_gid_text(entries[i].gid.raw, entries[i].gid_type, gid);
        used = first ? 0 : used;
        used += (size_t)snprintf(text + used, size - used, "%s%u %s", first ? "" : "; ",
                                 entries[i].gid_index, gid);
        first = false;
    }
}

static int fail_gid(const char *device, uint8_t port, uint32_t index, uint32_t table,
                    const struct ibv_gid_entry *entries, size_t count)
{
    char list[200];

    list_gids(entries, count, port, list, sizeof list);
    if (table > 0 && index >= table)
        return slu_fail(EINVAL, "gid_index %u: port %u of %s has indices 0..%u; there is %s", index,
                        port, device, table - 1, list);
    return slu_fail(EADDRNOTAVAIL,
                    "gid_index %u: this entry of port %u of %s is empty; there is %s", index, port,
                    device, list);
}

/* Reports a port that has addresses, of which none is ours. */
static int fail_foreign(const char *device, uint8_t port, const struct ibv_gid_entry *entries,
                        size_t count)
{
    char list[200];

    list_gids(entries, count, port, list, sizeof list);
    return slu_fail(EADDRNOTAVAIL,
                    "port %u of %s has no address of this network namespace; there is %s: run in "
                    "the namespace of its interface, or give gid_index to use one nevertheless",
                    port, device, list);
}

static bool has_entry(const struct ibv_gid_entry *entries, size_t count, uint8_t port)
{
    size_t i = 0;

    while (i < count && entries[i].port_num != port)
        i++;
    return i < count;
}

/* Chooses of the entries that were read. list: NULL if it is not known whose they are. */
static int choose_of(const struct ibv_gid_entry *entries, size_t count, const struct ifaddrs *list,
                     const char *device, uint8_t port, uint32_t table, int32_t index,
                     struct slu_verbs_path *path)
{
    struct candidate chosen = index < 0 ? best_gid(list, entries, count, port)
                                        : given_gid(list, entries, count, port, (uint32_t)index);

    path->has_gid = chosen.entry != NULL;
    if (index >= 0 && !chosen.entry)
        return fail_gid(device, port, (uint32_t)index, table, entries, count);
    if (!chosen.entry)
        return has_entry(entries, count, port) ? fail_foreign(device, port, entries, count) : 0;
    path->gid = *chosen.entry;
    path->gid_prefix = chosen.prefix;
    path->gid_is_ours = chosen.owner == OWNER_US;
    path->other_gids = 0;
    if (index < 0 && path->gid_is_ours && path->gid.gid_type == IBV_GID_TYPE_ROCE_V2)
        list_others(list, entries, count, path);
    return 0;
}

/* Reads the table with one system call: reading entries singly takes a thousand on some devices. */
int slu_verbs_gid_choose(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries,
                         uint32_t table, int32_t index, struct slu_verbs_path *path)
{
    const char *device = ibv_get_device_name(ibv->device);
    struct ibv_gid_entry *entries = calloc(gid_entries ? gid_entries : 1, sizeof *entries);
    struct ifaddrs *list = NULL;
    ssize_t count;
    int err;

    if (!entries)
        return slu_fail(ENOMEM, "no memory for the GID table of %s", device);
    count = ibv_query_gid_table(ibv, entries, gid_entries, 0);
    if (count < 0) {
        int code = slu_verbs_errno((int)count);

        err = slu_fail(code, "cannot read the GID table of %s: %s", device, strerror(code));
        goto free_entries;
    }
    if (path->link_layer == IBV_LINK_LAYER_ETHERNET && slu_fd_list_interfaces(&list) != 0)
        list = NULL;
    err = choose_of(entries, (size_t)count, list, device, port, table, index, path);
    if (list)
        freeifaddrs(list);
free_entries:
    free(entries);
    return err;
}

/* A GID of one of two sides, with the length of its subnet's prefix; 0: not known. */
struct offered {
    const uint8_t *gid;
    uint8_t prefix;
};

static struct offered ours_at(const struct slu_verbs_path *path, uint32_t i)
{
    if (i == 0)
        return (struct offered){path->gid.gid.raw, path->gid_prefix};
    return (struct offered){path->others[i - 1].gid.gid.raw, path->others[i - 1].prefix};
}

static struct offered theirs_at(const struct slu_endpoint *remote, uint32_t i)
{
    if (i == 0)
        return (struct offered){remote->verbs.gid, remote->verbs.gid_prefix};
    return (struct offered){remote->verbs.others[i - 1].gid, remote->verbs.others[i - 1].prefix};
}

/* Returns how well two addresses of RoCE v2 go together: 2 in one subnet, 1 of one kind, or 0. */
static int match(struct offered a, struct offered b)
{
    uint8_t prefix = a.prefix > b.prefix ? a.prefix : b.prefix;

    if (slu_verbs_gid_is_ipv4(a.gid) != slu_verbs_gid_is_ipv4(b.gid))
        return 0;
    return a.prefix && b.prefix && equal_bits(a.gid, b.gid) >= prefix ? 2 : 1;
}

/* Returns whether the pair a has the lower sum, or an equal one and the lower first index. */
static bool is_before(const uint32_t a[2], const uint32_t b[2], bool we_are_first)
{
    if (a[0] + a[1] != b[0] + b[1])
        return a[0] + a[1] < b[0] + b[1];
    return a[!we_are_first] < b[!we_are_first];
}

/*
 * Both sides compute the same pair: from the GIDs and prefixes of both endpoints, where a tie is
 * decided by the side whose first GID is lower.
 */
void slu_verbs_gid_agree(const struct slu_verbs_path *path, const struct slu_endpoint *remote,
                         uint32_t *ours, uint32_t *theirs)
{
    bool first = memcmp(path->gid.gid.raw, remote->verbs.gid, 16) < 0;
    bool both = path->gid.gid_type == IBV_GID_TYPE_ROCE_V2 &&
                remote->verbs.gid_type == IBV_GID_TYPE_ROCE_V2;
    uint32_t best[2] = {0, 0};
    int best_match = 0;

    for (uint32_t i = 0; both && i <= path->other_gids; i++) {
        for (uint32_t j = 0; j < remote->verbs.gids; j++) {
            const uint32_t pair[2] = {i, j};
            int found = match(ours_at(path, i), theirs_at(remote, j));

            if (found < best_match || (found == best_match && !is_before(pair, best, first)))
                continue;
            best_match = found;
            best[0] = i;
            best[1] = j;
        }
    }
    *ours = best[0];
    *theirs = best[1];
}

bool slu_verbs_gid_is_ipv4(const uint8_t gid[16])
{
    struct in6_addr address;

    memcpy(&address, gid, sizeof address);
    return IN6_IS_ADDR_V4MAPPED(&address);
}

void slu_verbs_gid_text(const uint8_t gid[16], uint32_t type, char text[SLU_VERBS_ADDRESS_CHARS])
{
    const char *kind = type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
                       : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                      : "GID";
    char ip[INET6_ADDRSTRLEN] = "?";

    if (slu_verbs_gid_is_ipv4(gid))
        inet_ntop(AF_INET, gid + 12, ip, sizeof ip);
    else
        inet_ntop(AF_INET6, gid, ip, sizeof ip);
    snprintf(text, SLU_VERBS_ADDRESS_CHARS, "%s %s", kind, ip);
}

uint32_t slu_verbs_gid_entries(struct ibv_context *ibv, uint32_t ports)
{
    uint32_t entries = 0;

    for (uint32_t port = 1; port <= ports; port++) {
        struct ibv_port_attr attr;

        /* The kernel refuses a buffer that is not longer than the entries it finds. */
        if (ibv_query_port(ibv, (uint8_t)port, &attr) == 0 && attr.gid_tbl_len > 0)
            entries += (uint32_t)attr.gid_tbl_len + 1;
    }
    return entries;
}
