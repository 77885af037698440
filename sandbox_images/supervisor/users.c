#include "users.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

struct settings settings = {.uid = 1000, .gid = 1000, .oom_fd = -1, .null_fd = -1};

static bool may_change_users(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    uint32_t need = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_KILL;
    return (data[0].effective & need) == need;
}

static int open_oom_counter(void)
{
    static const char *const places[] = {
        "/sys/fs/cgroup/memory.events",
        "/sys/fs/cgroup/memory/memory.oom_control",
    };
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        int fd = open(places[i], O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

void users_start(bool want_one_user)
{
    settings.init = getpid() == 1;
    settings.one_user = want_one_user || geteuid() != 0 || settings.uid == 0 || !may_change_users();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    settings.subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
    settings.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* Outside a box of our own the counter is of a cgroup that others share. */
    if (settings.init)
        settings.oom_fd = open_oom_counter();
    if (getrandom(settings.boot_id, sizeof settings.boot_id, GRND_NONBLOCK) != sizeof settings.boot_id)
        memset(settings.boot_id, 0, sizeof settings.boot_id);
}

bool users_drop(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    if (settings.one_user)
        return true;
    return setgroups(0, NULL) == 0 && setresgid(settings.gid, settings.gid, settings.gid) == 0
        && setresuid(settings.uid, settings.uid, settings.uid) == 0;
}

bool users_act(void)
{
    if (settings.one_user)
        return true;
    return setgroups(0, NULL) == 0 && setresgid((gid_t)-1, settings.gid, (gid_t)-1) == 0
        && setresuid((uid_t)-1, settings.uid, (uid_t)-1) == 0;
}

void users_first_to_die(void)
{
    /* The file belongs to root while the process is not dumpable, and the write would fail. */
    if (settings.one_user)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t ignored = write(fd, "1000", 4);
        (void)ignored;
        close(fd);
    }
    if (settings.one_user)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

uint64_t oom_kills(void)
{
    char text[512];
    if (settings.oom_fd < 0)
        return 0;
    ssize_t got = pread(settings.oom_fd, text, sizeof text - 1, 0);
    if (got <= 0)
        return 0;
    text[got] = 0;
    const char *line = strstr(text, "oom_kill ");
    return line ? strtoull(line + strlen("oom_kill "), NULL, 10) : 0;
}
