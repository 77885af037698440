/* Frames in from fd 0 and out to fd 1, in two fixed buffers. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame {
    uint8_t type;
    uint32_t channel;
    const uint8_t *payload;
    uint32_t length;
};

enum input { INPUT_NONE, INPUT_SOME, INPUT_END };

/* Reads what there is; INPUT_END when the other side has closed or broken the stream for good. */
enum input frames_read(void);

/* The next whole frame, valid until the next call; false when there is none. */
bool frames_next(struct frame *frame);

/* From now on a LEASE with this token cuts a half-received frame off. */
void frames_set_token(const uint8_t *token);
bool frames_have_token(void);
bool frames_token_is(const uint8_t *token);

/* For a child about to run foreign code: nothing secret stays in its memory. */
void frames_forget(void);

/* Room for a frame of up to `length` bytes of payload; the place to put them, or NULL. */
uint8_t *frames_reserve(uint32_t length);
void frames_commit(uint8_t type, uint32_t channel, uint32_t length);
void frames_send(uint8_t type, uint32_t channel, const void *payload, uint32_t length);

/* Writes what fd 1 takes. False when it is broken. */
bool frames_flush(void);
bool frames_pending(void);

/* Whether answers to more input would still fit. */
bool frames_room_for_answers(void);
/* Whether a long answer may be sent now and leaves room for short ones. */
bool frames_room_for_reply(uint32_t length);
/* Whether frames_reserve() gave NULL before and would not now; says so once. */
bool frames_turned_away(void);

#endif
