#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame.h"
#include "spawn.h"
#include "tree.h"
#include "users.h"
#include "wire.h"

enum {
    IDLE_MS = 100,
    DRAIN_MS = 2000,
    STORM_MS = 300,
    OVERDUE_MS = 5000,
    ORPHAN_MS = 3000,
    STORM_ROUNDS = 100,
};

enum { EXIT_LENGTH = 72 };

void exec_refuse(uint32_t channel, uint8_t code, const char *why)
{
    uint8_t payload[128];
    size_t length = strlen(why);
    payload[0] = code;
    if (length > sizeof payload - 1)
        length = sizeof payload - 1;
    memcpy(payload + 1, why, length);
    frames_send(F_REFUSED, channel, payload, (uint32_t)length + 1);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void close_pipes(int ends[4][2])
{
    for (int i = 0; i < 4; i++) {
        close_fd(ends[i][0]);
        close_fd(ends[i][1]);
    }
}

static bool make_pipe(int ends[2], int ours)
{
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ends[0] = ends[1] = -1;
        return false;
    }
    return descriptor_spare(ends[1], SPARE_BY_COMMANDS) && fcntl(ends[ours], F_SETFL, O_NONBLOCK) == 0;
}

static bool make_pipes(int ends[4][2], uint32_t flags)
{
    for (int i = 0; i < 4; i++)
        ends[i][0] = ends[i][1] = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends[PORT_CTL]) != 0) {
        ends[PORT_CTL][0] = ends[PORT_CTL][1] = -1;
        return false;
    }
    return make_pipe(ends[PORT_OUT], 0) && ((flags & X_MERGE) || make_pipe(ends[PORT_ERR], 0))
        && (!(flags & X_STDIN) || make_pipe(ends[PORT_IN], 1));
}

static void set_deadlines(struct job *job)
{
    job->started_us = now_us();
    job->grace_ms = exec_request.grace_ms;
    job->kill_left = exec_request.flags & X_KILL_LEFT;
    if (exec_request.timeout_ms)
        job->timeout_at = now_ms() + exec_request.timeout_ms;
}

static void adopt(struct job *job, pid_t pid, int ends[4][2])
{
    uint8_t payload[4];
    job->pid = pid;
    job->fd[PORT_CTL] = ends[PORT_CTL][0];
    job->fd[PORT_OUT] = ends[PORT_OUT][0];
    job->fd[PORT_ERR] = ends[PORT_ERR][0];
    job->fd[PORT_IN] = ends[PORT_IN][1];
    close_fd(ends[PORT_CTL][1]);
    close_fd(ends[PORT_OUT][1]);
    close_fd(ends[PORT_ERR][1]);
    close_fd(ends[PORT_IN][0]);
    job_watch(job, PORT_CTL, EPOLLIN);
    job_watch(job, PORT_OUT, EPOLLIN);
    job_watch(job, PORT_ERR, EPOLLIN);
    put32(payload, (uint32_t)pid);
    frames_send(F_STARTED, job->channel, payload, sizeof payload);
}

void exec_start(uint32_t channel, uint8_t *data, uint32_t length)
{
    int ends[4][2];
    if (!exec_parse(data, length)) {
        exec_refuse(channel, NO_MALFORMED, "the request is malformed");
        return;
    }
    struct job *job = job_new(JOB_EXEC, channel);
    if (!job) {
        exec_refuse(channel, NO_ROOM, NO_ROOM_TEXT);
        return;
    }
    set_deadlines(job);
    job->oom_before = oom_kills();
    pid_t pid = -1;
    if (make_pipes(ends, exec_request.flags)) {
        const struct keeper_pipes pipes = {
            .ctl = ends[PORT_CTL][1],
            .in = ends[PORT_IN][0],
            .out = ends[PORT_OUT][1],
            .err = exec_request.flags & X_MERGE ? ends[PORT_OUT][1] : ends[PORT_ERR][1],
            .output = {ends[PORT_OUT][0], ends[PORT_ERR][0]},
        };
        pid = fork();
        if (pid == 0)
            keeper_run(&pipes);
    }
    if (pid < 0) {
        exec_refuse(channel, NO_ROOM, NO_ROOM_TEXT);
        close_pipes(ends);
        job_free(job);
        return;
    }
    adopt(job, pid, ends);
}

static void order(struct job *job, uint32_t what, uint32_t grace_ms)
{
    const struct keeper_command command = {.order = what, .grace_ms = grace_ms};
    if (job->fd[PORT_CTL] >= 0)
        send(job->fd[PORT_CTL], &command, sizeof command, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void begin_kill(struct job *job)
{
    job->killing = true;
    order(job, O_KILL, job->grace_ms);
    job->storm_at = now_ms() + job->grace_ms + STORM_MS;
    job->overdue_at = now_ms() + job->grace_ms + OVERDUE_MS;
}

void exec_stop(struct job *job, uint8_t reason)
{
    /* A command that is only being drained has ended by itself; background may be killed. */
    job->unwanted = job->unwanted || reason != R_TIMEOUT;
    if (!job->main_done && !job->killing)
        job->reason = reason;
    if (job->killing || (job->settled && !job->lingering))
        return;
    begin_kill(job);
    if (!settings.subreaper)
        kill_orphans();
}

void exec_quiet(struct job *job)
{
    job->quieted = job->unwanted = true;
    job->grace_ms = 0;
    if (!job->main_done && !job->killing)
        job->reason = R_CANCELLED;
    if (!job->settled || job->lingering)
        begin_kill(job);
}

/* PID 1 alone can stop everything at once: then nothing forks while the tree is killed. It does
 * not wait to be asked, since among many busy processes the keeper gets no time to ask. */
static void quell(struct job *job)
{
    job->storm_at = settings.init ? now_ms() + STORM_MS : NEVER;
    if (!settings.init)
        return;
    kill(-1, SIGSTOP);
    for (int round = 0; round < STORM_ROUNDS; round++) {
        if (tree_signal(job->pid, NULL, SIGKILL) == 0)
            break;
        usleep(1000);
    }
    kill(-1, SIGCONT);
}

static void main_done(struct job *job)
{
    if (job->main_done)
        return;
    job->main_done = true;
    job->ended_us = now_us();
    job->timeout_at = NEVER;
    job->idle_at = now_ms() + IDLE_MS;
    job->hard_at = now_ms() + DRAIN_MS;
    job_close(job, PORT_IN);
    job_feed(job);
    if (job->kill_left && !job->killing && !job->settled)
        begin_kill(job);
}

static void keeper_gone(struct job *job)
{
    job_close(job, PORT_CTL);
    if (job->lingering) {
        job_free(job);
        return;
    }
    if (job->settled)
        return;
    job->keeper_gone = true;
    job->reason = R_KEEPER_LOST;
    main_done(job);
    job->settled = true;
    job->overdue_at = now_ms() + ORPHAN_MS;
    kill_orphans();
}

static bool report_fits(const struct job *job, const struct keeper_report *report)
{
    /* The keeper may be the workload's victim where both are one user. */
    return report->event >= K_MAIN_DONE && report->event <= K_STORM
        && (report->main_reaped || report->event == K_STORM || job->killing);
}

void exec_heard(struct job *job)
{
    struct keeper_report report;
    for (;;) {
        ssize_t got = recv(job->fd[PORT_CTL], &report, sizeof report, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got != sizeof report) {
            keeper_gone(job);
            break;
        }
        if (!report_fits(job, &report))
            continue;
        if (report.event == K_STORM) {
            quell(job);
            continue;
        }
        job->report = report;
        if (report.event == K_SETTLED)
            job->settled = true;
        main_done(job);
        job_pump(job);
    }
    if (job->kind == JOB_EXEC)
        exec_settle(job);
}

static uint8_t verdict(const struct job *job)
{
    int status = job->report.status;
    bool killed = (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        || (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);
    if (job->reason != R_EXITED || !killed)
        return job->reason;
    return oom_kills() > job->oom_before ? R_OOM : R_EXITED;
}

static void send_exit(struct job *job)
{
    uint8_t payload[EXIT_LENGTH] = {0};
    const struct keeper_report *report = &job->report;
    int status = report->status;
    payload[0] = verdict(job);
    if (!job->keeper_gone && report->main_reaped)
        payload[1] = WIFSIGNALED(status) ? 2 : 1;
    payload[2] = !job->keeper_gone;
    put32(payload + 4, (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
    put64(payload + 8, job->ended_us - job->started_us);
    put64(payload + 16, report->user_us);
    put64(payload + 24, report->system_us);
    put64(payload + 32, report->max_rss);
    put64(payload + 40, job->bytes[0]);
    put64(payload + 48, job->bytes[1]);
    put32(payload + 56, report->left);
    frames_send(F_EXIT, job->channel, payload, sizeof payload);
}

void exec_settle(struct job *job)
{
    if (job->lingering || !job->main_done || job_output_open(job))
        return;
    if (!job->settled) {
        if (!job->finishing && !job->killing) {
            job->finishing = true;
            order(job, O_FINISH, 0);
            job->overdue_at = now_ms() + OVERDUE_MS;
        }
        return;
    }
    if (job->keeper_gone && job->overdue_at != NEVER && kill_orphans() > 0)
        return;
    send_exit(job);
    if (job->report.left == 0 || job->fd[PORT_CTL] < 0) {
        job_free(job);
        return;
    }
    job->lingering = true;
    job->killing = false;
    job->storm_at = job->overdue_at = NEVER;
}

static void stop_reading(struct job *job)
{
    job_pump(job);
    if (job_held_back(job) && !job->unwanted) {
        job->idle_at = now_ms() + IDLE_MS;
        job->hard_at = now_ms() + DRAIN_MS;
        return;
    }
    job_close(job, PORT_OUT);
    job_close(job, PORT_ERR);
}

static void give_up_on_keeper(struct job *job)
{
    if (job->pid > 0) {
        kill(job->pid, SIGKILL);
        kill(job->pid, SIGCONT);
    }
    keeper_gone(job);
}

void exec_tick(struct job *job, int64_t now)
{
    if (now >= job->timeout_at) {
        job->timeout_at = NEVER;
        exec_stop(job, R_TIMEOUT);
    }
    if (job->main_done && job_output_open(job) && (now >= job->idle_at || now >= job->hard_at))
        stop_reading(job);
    if (now >= job->storm_at) {
        job->storm_at = NEVER;
        if (job->killing && (!job->settled || job->lingering))
            quell(job);
    }
    if (now >= job->overdue_at) {
        job->overdue_at = NEVER;
        if (!job->settled || job->lingering)
            give_up_on_keeper(job);
    }
    if (job->kind == JOB_EXEC)
        exec_settle(job);
}

int64_t exec_next_tick(const struct job *job)
{
    int64_t next = job->timeout_at < job->overdue_at ? job->timeout_at : job->overdue_at;
    next = job->storm_at < next ? job->storm_at : next;
    if (job->main_done && job_output_open(job)) {
        next = job->idle_at < next ? job->idle_at : next;
        next = job->hard_at < next ? job->hard_at : next;
    }
    if (job->keeper_gone && next > now_ms() + 20)
        next = now_ms() + 20;
    return next;
}

int kill_orphans(void)
{
    pid_t spared[MAX_JOBS + 1];
    int count = 0;
    for (int i = 0; i < MAX_JOBS; i++)
        if (jobs[i].kind != JOB_FREE && jobs[i].pid > 0 && !jobs[i].keeper_gone)
            spared[count++] = jobs[i].pid;
    spared[count] = 0;
    return tree_signal(getpid(), spared, SIGKILL);
}
