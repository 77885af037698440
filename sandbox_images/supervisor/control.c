#include "control.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exec.h"
#include "files.h"
#include "job.h"
#include "quiet.h"
#include "users.h"
#include "wire.h"

enum { LEASE_LENGTH = TOKEN + NONCE + 4, MIN_ORPHAN_MS = 1000 };

int64_t orphan_ms = 15000;

static uint8_t request[MAX_REQUEST] __attribute__((aligned(4096)));
static uint32_t request_length, request_channel;
static bool request_broken;

static uint8_t *feature(uint8_t *at, const char *name, const char *value)
{
    *at = (uint8_t)strlen(name);
    memcpy(at + 1, name, *at);
    at += 1 + *at;
    *at = (uint8_t)strlen(value);
    memcpy(at + 1, value, *at);
    return at + 1 + *at;
}

static void hello(const uint8_t *nonce)
{
    uint8_t payload[512], *at = payload;
    memcpy(at, nonce, NONCE);
    memcpy(at + NONCE, settings.boot_id, BOOT_ID);
    at += NONCE + BOOT_ID;
    put16(at, PROTOCOL_VERSION);
    at = feature(at + 2, "tree_kill", settings.subreaper ? "full" : "best_effort");
    at = feature(at, "oom", settings.oom_fd >= 0 ? "counter" : "none");
    at = feature(at, "users", settings.one_user ? "one" : "two");
    at = feature(at, "init", settings.init ? "yes" : "no");
    frames_send(F_HELLO, 0, payload, (uint32_t)(at - payload));
}

/* A new holder starts clean: what an old one ran is ended, unheard. */
static void clear_jobs(void)
{
    for (int i = 0; i < MAX_JOBS; i++) {
        struct job *job = &jobs[i];
        if (job->kind == JOB_FREE)
            continue;
        if (job->kind == JOB_FILE && job->pid > 0)
            kill(job->pid, SIGKILL);
        /* A keeper whose channel closes kills its tree and ends. */
        job_free(job);
    }
    quiet_forget();
    total_credit = TOTAL_WINDOW;
    request_length = 0;
    request_broken = false;
}

static void lease(const struct frame *frame)
{
    if (frame->length != LEASE_LENGTH)
        return;
    if (frames_have_token()) {
        if (!frames_token_is(frame->payload))
            return;
        clear_jobs();
    } else {
        frames_set_token(frame->payload);
    }
    uint32_t asked = get32(frame->payload + TOKEN + NONCE);
    orphan_ms = asked < MIN_ORPHAN_MS ? MIN_ORPHAN_MS : asked;
    hello(frame->payload + TOKEN);
}

/* Collects a request that is longer than a frame; false while it is not whole. */
static bool collect(const struct frame *frame)
{
    if (frame->channel != request_channel) {
        request_length = 0;
        request_broken = false;
        request_channel = frame->channel;
    }
    if (frame->length > MAX_REQUEST - request_length)
        request_broken = true;
    if (!request_broken) {
        memcpy(request + request_length, frame->payload, frame->length);
        request_length += frame->length;
    }
    return frame->type != F_PART;
}

static void start(const struct frame *frame)
{
    if (!collect(frame))
        return;
    if (request_broken)
        exec_refuse(frame->channel, NO_SIZE, "the request is larger than 512 KiB");
    else if (frame->channel == 0 || job_on(frame->channel))
        exec_refuse(frame->channel, NO_MALFORMED, "the channel is in use");
    else if (frame->type == F_EXEC)
        exec_start(frame->channel, request, request_length);
    else
        file_start(frame->channel, request, request_length);
    if (request_length > MAX_PAYLOAD)
        madvise(request, sizeof request, MADV_DONTNEED);
    request_length = 0;
    request_broken = false;
}

static void stop(struct job *job, uint8_t reason)
{
    if (job->kind == JOB_FILE)
        file_stop(job);
    else
        exec_stop(job, reason);
}

static uint8_t asked_reason(const struct frame *frame)
{
    return frame->length && frame->payload[0] == R_OUTPUT_LIMIT ? R_OUTPUT_LIMIT : R_CANCELLED;
}

static void credit(struct job *job, const struct frame *frame)
{
    if (frame->length != 4)
        return;
    int64_t amount = get32(frame->payload);
    if (frame->channel == 0) {
        total_credit += amount;
        if (total_credit > TOTAL_WINDOW)
            total_credit = TOTAL_WINDOW;
        jobs_resume();
    } else if (job) {
        job->credit += amount;
        if (job->credit > CHANNEL_WINDOW)
            job->credit = CHANNEL_WINDOW;
        job_resume(job);
    }
}

bool control_handle(const struct frame *frame)
{
    if (frame->type == F_LEASE) {
        lease(frame);
        return true;
    }
    if (!frames_have_token())
        return true;
    struct job *job = frame->channel ? job_on(frame->channel) : NULL;
    switch (frame->type) {
    case F_PING:
        if (frame->length <= 64)
            frames_send(F_PONG, 0, frame->payload, frame->length);
        break;
    case F_PART:
    case F_EXEC:
    case F_FILE:
        start(frame);
        break;
    case F_CREDIT:
        credit(job, frame);
        break;
    case F_CANCEL:
        if (job)
            stop(job, asked_reason(frame));
        break;
    case F_DATA:
        if (job && !job_input(job, frame->payload, frame->length))
            stop(job, R_CANCELLED);
        break;
    case F_END:
        if (job)
            job_input_end(job);
        break;
    case F_QUIET:
        quiet_start(frame->channel);
        break;
    case F_SHUTDOWN:
        return false;
    default:
        break;
    }
    return true;
}
