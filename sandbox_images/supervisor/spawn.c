#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frame.h"
#include "paths.h"
#include "users.h"
#include "wire.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

struct exec_request exec_request;

static bool take_string(uint8_t **at, const uint8_t *end, char **string)
{
    if (end - *at < 5)
        return false;
    uint32_t length = get32(*at);
    if ((uint64_t)length + 5 > (uint64_t)(end - *at) || memchr(*at + 4, 0, length)
        || (*at)[4 + length] != 0)
        return false;
    *string = (char *)*at + 4;
    *at += length + 5;
    return true;
}

bool exec_parse(uint8_t *data, uint32_t length)
{
    const uint8_t *end = data + length;
    if (length < 16)
        return false;
    struct exec_request *r = &exec_request;
    r->flags = get32(data);
    r->timeout_ms = get32(data + 4);
    r->grace_ms = get32(data + 8);
    uint32_t words = get16(data + 12), variables = get16(data + 14);
    uint8_t *at = data + 16;
    if (words == 0 || words > MAX_STRINGS || variables > MAX_STRINGS)
        return false;
    if (!take_string(&at, end, &r->cwd))
        return false;
    for (uint32_t i = 0; i < words; i++)
        if (!take_string(&at, end, &r->argv[i]))
            return false;
    for (uint32_t i = 0; i < variables; i++)
        if (!take_string(&at, end, &r->envp[i]))
            return false;
    r->argv[words] = NULL;
    r->envp[variables] = NULL;
    return at == end;
}

static void close_span(unsigned from, unsigned to)
{
    if (from > to || syscall(SYS_close_range, from, to, 0) == 0)
        return;
    struct rlimit limit;
    unsigned last = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (unsigned)limit.rlim_cur : 65536;
    for (unsigned fd = from; fd <= to && fd < last; fd++)
        close((int)fd);
}

void close_others(const int *kept)
{
    unsigned from = 3;
    for (; *kept >= 0; kept++) {
        if (*kept >= (int)from)
            close_span(from, (unsigned)*kept - 1);
        from = (unsigned)*kept + 1;
    }
    close_span(from, ~0u);
}

_Noreturn static void fail(int code, const char *subject, const char *what)
{
    dprintf(2, "%.*s: %s\n", 512, subject, what);
    _exit(code);
}

static void reset_signals(void)
{
    /* By system call: a C library keeps two signals to itself and refuses to set them. */
    static const uint64_t standard[8]; /* SIG_DFL, no flags, nothing masked */
    for (int number = 1; number <= 64; number++)
        syscall(SYS_rt_sigaction, number, standard, NULL, sizeof standard[0]);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, standard, NULL, sizeof standard[0]);
}

static void enter_directory(const char *path)
{
    int fd = path_open_directory(path);
    if (fd < 0)
        fail(126, path, errno == ELOOP ? "is or crosses a symbolic link" : strerror(errno));
    if (fchdir(fd) != 0)
        fail(126, path, strerror(errno));
    close(fd);
}

static const char *search_path(void)
{
    for (char **variable = exec_request.envp; *variable; variable++)
        if (strncmp(*variable, "PATH=", 5) == 0)
            return *variable + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* As a shell does: a file without a format it knows is a script of /bin/sh. */
static void start(char *program)
{
    static char *script[MAX_STRINGS + 2];
    execve(program, exec_request.argv, exec_request.envp);
    if (errno != ENOEXEC)
        return;
    script[0] = (char *)"/bin/sh";
    script[1] = program;
    for (int i = 1; i <= MAX_STRINGS && exec_request.argv[i - 1]; i++)
        script[i + 1] = exec_request.argv[i];
    execve("/bin/sh", script, exec_request.envp);
    errno = ENOEXEC;
}

static void start_from_path(char *name)
{
    static char candidate[8192];
    int worst = ENOENT;
    const char *at = search_path();
    for (;;) {
        size_t length = strcspn(at, ":");
        const char *directory = length ? at : ".";
        size_t shown = length ? length : 1;
        if (shown + strlen(name) + 2 <= sizeof candidate) {
            memcpy(candidate, directory, shown);
            candidate[shown] = '/';
            strcpy(candidate + shown + 1, name);
            start(candidate);
            if (errno != ENOENT && errno != ENOTDIR)
                worst = errno;
        }
        if (at[length] == 0)
            break;
        at += length + 1;
    }
    errno = worst;
}

_Noreturn void spawn_command(int in, int out, int err)
{
    static const int nothing[] = {-1};
    setsid();
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(126);
    close_others(nothing);
    frames_forget();
    users_first_to_die();
    reset_signals();
    if (!users_drop())
        fail(126, "supervisor", "cannot become the workload's user");
    umask(022);
    enter_directory(exec_request.cwd);
    char *program = exec_request.argv[0];
    if (strchr(program, '/'))
        start(program);
    else if (*program)
        start_from_path(program);
    else
        errno = ENOENT;
    if (errno == ENOENT || errno == ENOTDIR)
        fail(127, program, strchr(program, '/') ? "no such file" : "command not found");
    fail(126, program, strerror(errno));
}
