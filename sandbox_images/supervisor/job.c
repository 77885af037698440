#include "job.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"
#include "wire.h"

struct job jobs[MAX_JOBS];
int64_t total_credit = TOTAL_WINDOW;

/* Apart from the table, so that looking for a channel touches little memory. */
static uint8_t inputs[MAX_JOBS][INPUT_WINDOW] __attribute__((aligned(4096)));
static uint8_t answers[MAX_JOBS][MAX_ANSWER] __attribute__((aligned(4096)));
static int epoll;

uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

int64_t now_ms(void) { return (int64_t)(now_us() / 1000); }

void jobs_start(int epoll_fd) { epoll = epoll_fd; }

struct job *job_on(uint32_t channel)
{
    for (int i = 0; i < MAX_JOBS; i++)
        if (jobs[i].kind != JOB_FREE && jobs[i].channel == channel)
            return &jobs[i];
    return NULL;
}

struct job *job_new(enum job_kind kind, uint32_t channel)
{
    /* Commands that left something running keep their place: files have some of their own. */
    int places = kind == JOB_FILE ? MAX_JOBS : MAX_JOBS - FILE_PLACES;
    for (int i = 0; i < places; i++) {
        struct job *job = &jobs[i];
        if (job->kind != JOB_FREE)
            continue;
        *job = (struct job){
            .kind = kind,
            .channel = channel,
            .fd = {-1, -1, -1, -1},
            .credit = CHANNEL_WINDOW,
            .timeout_at = NEVER,
            .idle_at = NEVER,
            .hard_at = NEVER,
            .storm_at = NEVER,
            .overdue_at = NEVER,
        };
        return job;
    }
    return NULL;
}

void job_free(struct job *job)
{
    for (int port = 0; port < PORTS; port++)
        job_close(job, (enum port)port);
    if (job->in_used)
        madvise(inputs[job - jobs], INPUT_WINDOW, MADV_DONTNEED);
    job->kind = JOB_FREE;
}

void job_watch(struct job *job, enum port port, uint32_t events)
{
    if (job->fd[port] < 0 || job->watched[port])
        return;
    struct epoll_event event = {
        .events = events,
        .data.u32 = (uint32_t)(job - jobs) << 2 | (uint32_t)port,
    };
    job->watched[port] = epoll_ctl(epoll, EPOLL_CTL_ADD, job->fd[port], &event) == 0;
}

void job_unwatch(struct job *job, enum port port)
{
    if (job->watched[port])
        epoll_ctl(epoll, EPOLL_CTL_DEL, job->fd[port], NULL);
    job->watched[port] = false;
}

void job_close(struct job *job, enum port port)
{
    if (job->fd[port] < 0)
        return;
    /* A keeper may hold the same pipe: closing alone would leave it in the set. */
    job_unwatch(job, port);
    close(job->fd[port]);
    job->fd[port] = -1;
}

void jobs_reaped(pid_t pid)
{
    for (int i = 0; i < MAX_JOBS; i++)
        if (jobs[i].kind != JOB_FREE && jobs[i].pid == pid)
            jobs[i].pid = 0;
}

/* The lowest free number is always given out, so a number tells how many are left. */
bool descriptor_spare(int fd, int spare)
{
    struct rlimit limit;
    return fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0
        && (rlim_t)(fd + spare) < limit.rlim_cur;
}

bool job_output_open(const struct job *job)
{
    return job->fd[PORT_OUT] >= 0 || job->fd[PORT_ERR] >= 0;
}

static int64_t allowance(const struct job *job)
{
    int64_t credit = job->credit < total_credit ? job->credit : total_credit;
    credit -= HEADER;
    return credit > MAX_PAYLOAD ? MAX_PAYLOAD : credit;
}

bool job_held_back(const struct job *job)
{
    return (job->fd[PORT_OUT] >= 0 && !job->watched[PORT_OUT])
        || (job->fd[PORT_ERR] >= 0 && !job->watched[PORT_ERR]);
}

static void pump_port(struct job *job, enum port port)
{
    uint8_t type = port == PORT_OUT ? F_OUT : F_ERR;
    /* A few frames at a time: a flood on one channel leaves turns to the others. */
    for (int turn = 0; turn < 4 && job->fd[port] >= 0; turn++) {
        int64_t room = allowance(job);
        uint8_t *place = room > 0 ? frames_reserve((uint32_t)room) : NULL;
        if (!place) {
            job_unwatch(job, port);
            return;
        }
        ssize_t got = read(job->fd[port], place, (size_t)room);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            job_close(job, port);
            return;
        }
        frames_commit(type, job->channel, (uint32_t)got);
        job->credit -= got + HEADER;
        total_credit -= got + HEADER;
        job->bytes[port == PORT_ERR] += (uint64_t)got;
        if (job->main_done)
            job->idle_at = now_ms() + 100;
        if (got < room)
            return; /* drained, or so little that the next turn of the loop will do */
    }
}

void job_pump(struct job *job)
{
    pump_port(job, PORT_OUT);
    pump_port(job, PORT_ERR);
}

void job_resume(struct job *job)
{
    if (allowance(job) <= 0)
        return;
    job_watch(job, PORT_OUT, EPOLLIN);
    job_watch(job, PORT_ERR, EPOLLIN);
}

void jobs_resume(void)
{
    for (int i = 0; i < MAX_JOBS; i++)
        if (jobs[i].kind != JOB_FREE && job_held_back(&jobs[i]))
            job_resume(&jobs[i]);
}

bool job_input(struct job *job, const uint8_t *data, uint32_t length)
{
    uint8_t *ring = inputs[job - jobs];
    if (job->in_ended || length > INPUT_WINDOW - job->in_length - job->in_returned)
        return false;
    if (job->fd[PORT_IN] < 0) {
        job->in_returned += length;
        job_feed(job);
        return true;
    }
    job->in_used = true;
    uint32_t end = (job->in_start + job->in_length) % INPUT_WINDOW;
    uint32_t first = length < INPUT_WINDOW - end ? length : INPUT_WINDOW - end;
    memcpy(ring + end, data, first);
    memcpy(ring, data + first, length - first);
    job->in_length += length;
    job_feed(job);
    return true;
}

void job_input_end(struct job *job)
{
    job->in_ended = true;
    job_feed(job);
}

/* Gives credit back in large pieces, or when nothing else is left to wait for. */
static void return_credit(struct job *job)
{
    if (job->in_ended || job->in_returned == 0)
        return;
    if (job->in_returned < INPUT_WINDOW / 4 && job->in_length > 0)
        return;
    uint8_t payload[4];
    put32(payload, job->in_returned);
    frames_send(F_CREDIT, job->channel, payload, sizeof payload);
    job->in_returned = 0;
}

void job_feed(struct job *job)
{
    const uint8_t *ring = inputs[job - jobs];
    while (job->in_length > 0 && job->fd[PORT_IN] >= 0) {
        uint32_t first = INPUT_WINDOW - job->in_start;
        uint32_t piece = job->in_length < first ? job->in_length : first;
        ssize_t put = write(job->fd[PORT_IN], ring + job->in_start, piece);
        if (put < 0 && errno == EAGAIN) {
            job_watch(job, PORT_IN, EPOLLOUT);
            break;
        }
        if (put < 0) {
            job_close(job, PORT_IN); /* nobody reads: the rest is dropped, and credited */
            break;
        }
        job->in_start = (job->in_start + (uint32_t)put) % INPUT_WINDOW;
        job->in_length -= (uint32_t)put;
        job->in_returned += (uint32_t)put;
    }
    if (job->fd[PORT_IN] < 0) {
        job->in_returned += job->in_length;
        job->in_length = 0;
    }
    if (job->in_length == 0)
        job_unwatch(job, PORT_IN);
    if (job->in_length == 0 && job->in_ended)
        job_close(job, PORT_IN);
    return_credit(job);
}

uint8_t *job_answer(struct job *job) { return answers[job - jobs]; }
