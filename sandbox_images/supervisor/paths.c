#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ENOTDIR is said of a link too: tell them apart. */
static int blame(int directory, const char *name)
{
    struct stat status;
    int number = errno;
    if (number == ENOTDIR && fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0
        && S_ISLNK(status.st_mode))
        number = ELOOP;
    errno = number;
    return -1;
}

static int step(int directory, const char *name, bool make)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(directory, name, flags);
    if (fd < 0 && errno == ENOENT && make) {
        if (mkdirat(directory, name, 0755) != 0 && errno != EEXIST)
            return -1;
        fd = openat(directory, name, flags);
    }
    return fd < 0 ? blame(directory, name) : fd;
}

static bool next_component(const char **at, char name[256])
{
    while (**at == '/')
        ++*at;
    size_t length = strcspn(*at, "/");
    if (length == 0) {
        errno = 0;
        return false;
    }
    if (length > 255) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(name, *at, length);
    name[length] = 0;
    *at += length;
    if (strcmp(name, "..") == 0) {
        errno = EINVAL;
        return false;
    }
    return true;
}

/* Walks `path` from `start`, all of it or up to its last component. Closes nothing of others. */
static int walk(int start, const char *path, bool make, const char **last)
{
    char name[256];
    int at = dup(start);
    if (at < 0)
        return -1;
    fcntl(at, F_SETFD, FD_CLOEXEC);
    while (next_component(&path, name)) {
        size_t length = strlen(name);
        bool end = path[strspn(path, "/")] == 0;
        if (end && last) {
            *last = path - length;
            return at;
        }
        if (strcmp(name, ".") == 0)
            continue;
        int next = step(at, name, make);
        int number = errno;
        close(at);
        if (next < 0) {
            errno = number;
            return -1;
        }
        at = next;
    }
    if (errno) {
        int number = errno;
        close(at);
        errno = number;
        return -1;
    }
    if (last)
        *last = ".";
    return at;
}

static int open_root(const char *path)
{
    if (path[0] != '/') {
        errno = EINVAL;
        return -1;
    }
    return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int path_open_directory_at(int start, const char *path, bool make)
{
    return walk(start, path, make, NULL);
}

int path_open_parent_at(int start, const char *path, bool make, const char **name)
{
    int fd = walk(start, path, make, name);
    size_t length = fd < 0 ? 0 : strlen(*name);
    if (fd >= 0 && (*name)[length - 1] == '/') {
        /* `a/` asks for a directory, which no file operation makes */
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

int path_open_directory(const char *path)
{
    int root = open_root(path);
    if (root < 0)
        return -1;
    int fd = walk(root, path, false, NULL);
    int number = errno;
    close(root);
    errno = number;
    return fd;
}

int path_open_parent(const char *path, bool make, const char **name)
{
    int root = open_root(path);
    if (root < 0)
        return -1;
    int fd = path_open_parent_at(root, path, make, name);
    int number = errno;
    close(root);
    errno = number;
    return fd;
}
