#include "frame.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "wire.h"

enum {
    IN_SIZE = 192 * 1024,
    /* All output that credits allow, and answers beside it. */
    OUT_SIZE = TOTAL_WINDOW + 512 * 1024,
    ANSWERS = 128 * 1024,
    LEASE_LENGTH = TOKEN + NONCE + 4,
};

static uint8_t in[IN_SIZE];
static size_t in_start, in_end;
static size_t scanned; /* up to here no lease begins */
static uint8_t out[OUT_SIZE];
static size_t out_start, out_end;
static uint8_t marker[HEADER + TOKEN];
static bool have_token;
static bool adrift;
static bool was_full;

void frames_set_token(const uint8_t *token)
{
    put32(marker, LEASE_LENGTH);
    marker[4] = F_LEASE;
    put32(marker + 5, 0);
    memcpy(marker + HEADER, token, TOKEN);
    have_token = true;
}

bool frames_have_token(void) { return have_token; }

bool frames_token_is(const uint8_t *token)
{
    uint8_t difference = 0;
    for (int i = 0; i < TOKEN; i++)
        difference |= (uint8_t)(marker[HEADER + i] ^ token[i]);
    return difference == 0;
}

void frames_forget(void)
{
    explicit_bzero(marker, sizeof marker);
    explicit_bzero(in, in_end);
    explicit_bzero(out, out_end);
}

enum input frames_read(void)
{
    if (in_start > 0) {
        memmove(in, in + in_start, in_end - in_start);
        in_end -= in_start;
        scanned = scanned > in_start ? scanned - in_start : 0;
        in_start = 0;
    }
    if (in_end == IN_SIZE)
        return INPUT_NONE; /* whole frames wait here for room for their answers */
    ssize_t got = read(0, in + in_end, IN_SIZE - in_end);
    if (got > 0) {
        in_end += (size_t)got;
        return INPUT_SOME;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return INPUT_NONE;
    return INPUT_END;
}

/* Where a lease with our token begins, at or after in_start; in_end when there is none. A writer
 * that died left half a frame, which the new holder's LEASE would otherwise complete. */
static size_t find_marker(void)
{
    size_t from = scanned > in_start ? scanned : in_start;
    while (from + sizeof marker <= in_end) {
        const uint8_t *hit = memmem(in + from, in_end - from, marker, sizeof marker);
        if (hit)
            return (size_t)(hit - in);
        break;
    }
    scanned = in_end >= sizeof marker ? in_end - sizeof marker + 1 : 0;
    return in_end;
}

/* After what is no frame, only the next lease counts. */
static bool drift(size_t lease)
{
    if (lease < in_end) {
        in_start = lease;
        adrift = false;
        return false;
    }
    if (in_end - in_start >= sizeof marker)
        in_start = in_end - sizeof marker + 1;
    return true;
}

bool frames_next(struct frame *frame)
{
    size_t lease = have_token ? find_marker() : in_end;
    for (;;) {
        if (adrift && drift(lease))
            return false;
        size_t have = in_end - in_start;
        uint32_t length = have >= HEADER ? get32(in + in_start) : 0;
        if (length > MAX_PAYLOAD) {
            adrift = true;
            continue;
        }
        size_t end = in_start + HEADER + length;
        bool whole = have >= HEADER && end <= in_end;
        if (lease < in_end && in_start < lease && (!whole || end > lease)) {
            in_start = lease;
            continue;
        }
        if (!whole)
            return false;
        frame->length = length;
        frame->type = in[in_start + 4];
        frame->channel = get32(in + in_start + 5);
        frame->payload = in + in_start + HEADER;
        in_start = end;
        return true;
    }
}

uint8_t *frames_reserve(uint32_t length)
{
    size_t need = (size_t)length + HEADER;
    if (out_end + need > OUT_SIZE && out_start > 0) {
        memmove(out, out + out_start, out_end - out_start);
        out_end -= out_start;
        out_start = 0;
    }
    if (out_end + need > OUT_SIZE) {
        was_full = true;
        return NULL;
    }
    return out + out_end + HEADER;
}

void frames_commit(uint8_t type, uint32_t channel, uint32_t length)
{
    put32(out + out_end, length);
    out[out_end + 4] = type;
    put32(out + out_end + 5, channel);
    out_end += HEADER + length;
}

void frames_send(uint8_t type, uint32_t channel, const void *payload, uint32_t length)
{
    uint8_t *place = frames_reserve(length);
    if (!place) {
        /* Input is read, and answers are made, only while there is room. A controller that waits
         * for an answer that was dropped would wait for ever; one whose box ends is told. */
        dprintf(2, "harness-supervisor: no room for a frame of type %d\n", type);
        _exit(1);
    }
    if (length)
        memcpy(place, payload, length);
    frames_commit(type, channel, length);
}

bool frames_flush(void)
{
    while (out_start < out_end) {
        ssize_t put = write(1, out + out_start, out_end - out_start);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN;
        out_start += (size_t)put;
    }
    out_start = out_end = 0;
    return true;
}

bool frames_pending(void) { return out_start < out_end; }

static size_t room(void) { return OUT_SIZE - (out_end - out_start); }

bool frames_room_for_answers(void) { return room() > ANSWERS + 2 * MAX_PAYLOAD; }

bool frames_room_for_reply(uint32_t length) { return room() > ANSWERS + 2 * MAX_PAYLOAD + HEADER + length; }

bool frames_turned_away(void)
{
    bool yes = was_full && frames_room_for_answers();
    was_full = was_full && !yes;
    return yes;
}
