/* SPDX-License-Identifier: MIT */
/*
 * Contents of the mail: messages, and the places in the memory of a peer that it writes. Both begin
 * with a header, unless a message is too short for one, and go on with the pattern of its key,
 * which follows from its sender, receiver and time.
 */
#include "soak.h"

struct header {
    uint64_t key;
    uint64_t number;
    uint32_t length;
    uint32_t written; /* places that were written before, if it is not a multicast */
    uint32_t multicast;
    uint32_t reserved;
};

/* The immediate of a write: the number of its place. That of a send has no such bit. */
#define IMMEDIATE_PLACE (UINT32_C(1) << 31)

#define PLACE_NUMBERS (UINT64_C(1) << 60)
#define EVERYBODY 0xff

uint64_t capacity_of(uint64_t meeting, uint32_t from, uint32_t to, uint64_t number)
{
    static const uint64_t large[] = {UINT64_C(1) << 16, UINT64_C(1) << 20, LARGEST, LARGEST};
    uint64_t chance = mix(key_of(meeting, from, to, number));
    uint64_t capacity = chance % 64 == 0 ? large[chance >> 8 & 3] : SMALL;
    return capacity < soak.max_message ? capacity : soak.max_message;
}

static uint64_t multicast_key(uint32_t from, uint32_t epoch, uint64_t number)
{
    return key_of((uint64_t)epoch | UINT64_C(1) << 40, from, EVERYBODY, number);
}

static void fill(uint8_t *bytes, uint64_t length, struct header header)
{
    if (length < sizeof(header)) {
        fill_pattern(bytes, 0, length, header.key);
        return;
    }
    header.length = (uint32_t)length;
    memcpy(bytes, &header, sizeof(header));
    fill_pattern(bytes + sizeof(header), 0, length - sizeof(header), header.key);
}

void fill_message(struct flight *flight)
{
    flight->key = key_of(flight->meeting, soak.index, flight->peer, flight->number);
    fill(flight->bytes, flight->length,
         (struct header){.key = flight->key,
                         .number = flight->number,
                         .written = (uint32_t)soak.peers[flight->peer].written});
}

void fill_place(struct flight *flight)
{
    flight->key = key_of(flight->meeting, soak.index, flight->peer, PLACE_NUMBERS | flight->number);
    fill(flight->bytes, flight->length,
         (struct header){.key = flight->key, .number = flight->number});
}

void fill_multicast(uint8_t *bytes, uint64_t length, uint64_t number)
{
    fill(bytes, length,
         (struct header){.key = multicast_key(soak.index, soak.epoch, number),
                         .number = number,
                         .multicast = 1});
}

uint32_t immediate_of(const struct flight *flight)
{
    if (flight->kind == FLY_PLACE) {
        return IMMEDIATE_PLACE | (uint32_t)flight->number;
    }
    return (uint32_t)flight->key & ~IMMEDIATE_PLACE;
}

/* Requires that the header is of this rank and at this place of the order. */
static void check_header(const struct header *header, uint32_t from, uint64_t number, uint64_t key)
{
    const struct peer *peer = &soak.peers[from];
    if (header->multicast == 1) {
        key = multicast_key(from, peer->epoch, header->number);
        number = header->number;
    }
    expect(
        header->key == key && header->number == number && header->multicast <= 1,
        "header from rank %u: number %llu, key %#llx, multicast %u, length %u; wanted %llu, %#llx",
        from, (unsigned long long)header->number, (unsigned long long)header->key,
        header->multicast, header->length, (unsigned long long)number, (unsigned long long)key);
}

static void check_rest(const uint8_t *bytes, uint64_t length, uint64_t key, const char *what,
                       uint32_t from)
{
    uint64_t wrong = check_pattern(bytes, 0, length, key);
    expect(wrong == length, "byte %llu of %llu of %s from rank %u", (unsigned long long)wrong,
           (unsigned long long)length, what, from);
}

/* Checks the places that the peer wrote before this message. Returns the last one's length. */
static uint32_t check_places(uint32_t from, uint64_t written)
{
    struct peer *peer = &soak.peers[from];
    uint32_t length = 0;
    expect(written <= peer->checked || written - peer->checked <= WINDOWS, "%llu after %llu",
           (unsigned long long)written, (unsigned long long)peer->checked);
    while (peer->checked < written) {
        uint64_t number = ++peer->checked;
        const uint8_t *place = soak.common->windows[from][number % WINDOWS];
        struct header header;
        memcpy(&header, place, sizeof(header));
        check_header(&header, from, number,
                     key_of(peer->meeting, from, soak.index, PLACE_NUMBERS | number));
        expect(header.length >= sizeof(header) && header.length <= WINDOW, "%u bytes",
               header.length);
        check_rest(place + sizeof(header), header.length - sizeof(header), header.key, "a place",
                   from);
        length = header.length;
        atomic_fetch_add(&soak.ledger->bytes, length);
    }
    return length;
}

/* Extends the 31 bits of a number near to the number that was checked. */
static uint64_t widen(uint64_t near, uint32_t bits)
{
    uint64_t number = (near & ~(uint64_t)(IMMEDIATE_PLACE - 1)) | bits;
    return number + IMMEDIATE_PLACE / 2 < near ? number + IMMEDIATE_PLACE : number;
}

static void check_written(struct flight *flight, const struct sluice_completion *completion)
{
    uint64_t number =
        widen(soak.peers[flight->peer].checked, completion->immediate & ~IMMEDIATE_PLACE);
    uint64_t before = soak.peers[flight->peer].checked;
    uint32_t length = check_places(flight->peer, number);
    expect(number <= before || completion->bytes == length, "%llu bytes written, not %u",
           (unsigned long long)completion->bytes, length);
}

void check_message(struct flight *flight, const struct sluice_completion *completion)
{
    uint64_t key = key_of(flight->meeting, flight->peer, soak.index, flight->number);
    struct header header;
    uint64_t length = completion->bytes;
    bool immediate = completion->flags & SLUICE_IMMEDIATE;
    soak.peers[flight->peer].received++;
    if (immediate && completion->immediate & IMMEDIATE_PLACE) {
        check_written(flight, completion);
        return;
    }
    expect(length <= flight->length, "%llu bytes in %llu", (unsigned long long)length,
           (unsigned long long)flight->length);
    if (length < sizeof(header)) {
        check_rest(flight->bytes, length, key, "a short message", flight->peer);
    } else {
        memcpy(&header, flight->bytes, sizeof(header));
        check_header(&header, flight->peer, flight->number, key);
        expect(header.length == length, "%llu bytes, not %u", (unsigned long long)length,
               header.length);
        check_rest(flight->bytes + sizeof(header), length - sizeof(header), header.key, "a message",
                   flight->peer);
        key = header.key;
        if (!header.multicast) {
            check_places(flight->peer, widen(soak.peers[flight->peer].checked,
                                             header.written & ~IMMEDIATE_PLACE));
        }
    }
    expect(!immediate || completion->immediate == ((uint32_t)key & ~IMMEDIATE_PLACE),
           "immediate %#x of a message from rank %u", completion->immediate, flight->peer);
}
