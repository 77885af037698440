#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec.h"
#include "frame.h"
#include "operation.h"
#include "spawn.h"
#include "users.h"
#include "wire.h"

enum { HEAD = 28, ANSWER_HEAD = 16, STOP_MS = 1000 };

static bool parse(struct operation *o, const uint8_t *data, uint32_t length)
{
    if (length < HEAD + 1)
        return false;
    *o = (struct operation){.op = data[0], .flags = data[1], .in = -1, .out = -1};
    o->mode = get32(data + 4);
    o->a = get64(data + 8);
    o->b = get64(data + 16);
    uint32_t path = get32(data + 24);
    if (path > length - HEAD - 1 || memchr(data + HEAD, 0, path) || data[HEAD + path] != 0)
        return false;
    o->path = (char *)data + HEAD;
    o->rest = data + HEAD + path + 1;
    o->rest_length = length - HEAD - path - 1;
    return o->op >= OP_READ && o->op <= OP_REALPATH;
}

int operation_take(struct operation *o, void *bytes, size_t length)
{
    static uint8_t ahead[64 * 1024];
    uint8_t *at = bytes;
    for (;;) {
        size_t here = length < o->rest_length ? length : o->rest_length;
        memcpy(at, o->rest, here);
        o->rest += here;
        o->rest_length -= here;
        at += here;
        length -= here;
        if (length == 0)
            return 1;
        ssize_t got = o->in < 0 ? 0 : read(o->in, ahead, sizeof ahead);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got <= 0)
            return 0;
        o->rest = ahead;
        o->rest_length = (size_t)got;
    }
}

int operation_give(const struct operation *o, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    while (length > 0) {
        ssize_t put = write(o->out, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return 0;
        at += put;
        length -= (size_t)put;
    }
    return 1;
}

uint8_t fault_of(int number)
{
    switch (number) {
    case ENOENT: return FAULT_MISSING;
    case EACCES:
    case EPERM:
    case EROFS: return FAULT_DENIED;
    case ELOOP: return FAULT_LINK;
    case EISDIR:
    case ENOTEMPTY: return FAULT_DIRECTORY;
    case ENOTDIR: return FAULT_NOT_DIRECTORY;
    case EEXIST: return FAULT_EXISTS;
    case EFBIG: return FAULT_TOO_LARGE;
    case ENOSPC:
    case EDQUOT: return FAULT_NO_SPACE;
    case EINVAL:
    case ENAMETOOLONG: return FAULT_NAME;
    case ENXIO:
    case ENODEV: return FAULT_NOT_FILE;
    default: return FAULT_IO;
    }
}

static uint8_t perform(struct operation *o)
{
    switch (o->op) {
    case OP_READ: return do_read(o);
    case OP_WRITE: return do_write(o);
    case OP_EDIT: return do_edit(o);
    case OP_LIST: return do_list(o);
    case OP_STAT: return do_stat(o);
    case OP_REMOVE: return do_remove(o);
    case OP_UPLOAD: return do_upload(o);
    default: return do_realpath(o);
    }
}

_Noreturn static void act(struct operation *o, int ctl)
{
    static uint8_t answer[MAX_ANSWER];
    int kept[4] = {ctl, o->in, o->out, -1};
    int count = 0;
    for (int i = 0; i < 3; i++)
        if (kept[i] >= 0) {
            int fd = kept[i], j = count++;
            for (; j > 0 && kept[j - 1] > fd; j--)
                kept[j] = kept[j - 1];
            kept[j] = fd;
        }
    kept[count] = -1;
    /* Its fd 1 is the frames' pipe until here: what acts for the workload's user has no part in it. */
    for (int fd = 0; fd < 3; fd++)
        dup2(settings.null_fd, fd);
    close_others(kept);
    umask(022);
    uint8_t code = users_act() ? perform(o) : FAULT_IO;
    size_t extra = o->extra_length < MAX_ANSWER - ANSWER_HEAD ? o->extra_length
                                                               : MAX_ANSWER - ANSWER_HEAD;
    answer[0] = code;
    put64(answer + 8, o->value);
    if (extra)
        memcpy(answer + ANSWER_HEAD, o->extra, extra);
    send(ctl, answer, ANSWER_HEAD + extra, MSG_NOSIGNAL);
    _exit(0);
}

static bool wants_output(uint8_t op) { return op == OP_READ || op == OP_LIST || op == OP_REALPATH; }

static bool open_pipes(const struct operation *o, int ctl[2], int in[2], int out[2])
{
    ctl[0] = ctl[1] = in[0] = in[1] = out[0] = out[1] = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl) != 0)
        return false;
    if ((o->flags & FILE_INPUT)
        && (pipe2(in, O_CLOEXEC) != 0 || fcntl(in[1], F_SETFL, O_NONBLOCK) != 0))
        return false;
    if (in[1] >= 0)
        fcntl(in[1], F_SETPIPE_SZ, 2 * INPUT_WINDOW); /* fewer turns, where it is allowed */
    if (wants_output(o->op)
        && (pipe2(out, O_CLOEXEC) != 0 || fcntl(out[0], F_SETFL, O_NONBLOCK) != 0))
        return false;
    return descriptor_spare(ctl[1], SPARE_BY_FILES)
        && descriptor_spare(out[1] < 0 ? in[1] < 0 ? 0 : in[1] : out[1], SPARE_BY_FILES);
}

static void close_both(const int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

void file_start(uint32_t channel, const uint8_t *data, uint32_t length)
{
    struct operation o;
    int ctl[2], in[2], out[2];
    if (!parse(&o, data, length)) {
        exec_refuse(channel, NO_MALFORMED, "the request is malformed");
        return;
    }
    struct job *job = job_new(JOB_FILE, channel);
    if (!job) {
        exec_refuse(channel, NO_ROOM, NO_ROOM_TEXT);
        return;
    }
    pid_t pid = -1;
    if (open_pipes(&o, ctl, in, out)) {
        pid = fork();
        if (pid == 0) {
            o.in = in[0];
            o.out = out[1];
            act(&o, ctl[1]);
        }
    }
    if (pid < 0) {
        exec_refuse(channel, NO_ROOM, NO_ROOM_TEXT);
        close_both(ctl);
        close_both(in);
        close_both(out);
        job_free(job);
        return;
    }
    job->pid = pid;
    job->fd[PORT_CTL] = ctl[0];
    job->fd[PORT_OUT] = out[0];
    job->fd[PORT_IN] = in[1];
    close(ctl[1]);
    if (in[0] >= 0)
        close(in[0]);
    if (out[1] >= 0)
        close(out[1]);
    job_watch(job, PORT_CTL, EPOLLIN);
    job_watch(job, PORT_OUT, EPOLLIN);
}

void file_heard(struct job *job)
{
    uint8_t *answer = job_answer(job);
    ssize_t got = recv(job->fd[PORT_CTL], answer, MAX_ANSWER, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got < ANSWER_HEAD) {
        memset(answer, 0, ANSWER_HEAD);
        answer[0] = FAULT_IO;
        got = ANSWER_HEAD;
    }
    job->answer_length = (uint32_t)got;
    job->main_done = true;
    job_close(job, PORT_CTL);
    job_close(job, PORT_IN);
    job_pump(job);
    file_settle(job);
}

void file_settle(struct job *job)
{
    if (!job->main_done || job_output_open(job) || !frames_room_for_reply(job->answer_length))
        return; /* file_tick asks again */
    frames_send(F_REPLY, job->channel, job_answer(job), job->answer_length);
    job_free(job);
}

void file_stop(struct job *job)
{
    if (job->killing)
        return;
    job->killing = true;
    /* It meets the end of its input or a closed output, tidies up and answers. */
    job_close(job, PORT_IN);
    job_close(job, PORT_OUT);
    job->overdue_at = now_ms() + STOP_MS;
    file_settle(job);
}

void file_tick(struct job *job, int64_t now)
{
    if (now >= job->overdue_at) {
        job->overdue_at = NEVER;
        if (job->pid > 0)
            kill(job->pid, SIGKILL);
    }
    file_settle(job);
}
