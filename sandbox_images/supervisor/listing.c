/* Looking at directories, and removing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "operation.h"
#include "paths.h"
#include "wire.h"

enum { MAX_ENTRIES = 1 << 20 };

struct list {
    char **paths; /* relative to the top */
    size_t count, room;
    uint64_t left_out; /* entries whose path no frame carries */
};

static uint8_t kind_of(mode_t mode)
{
    if (S_ISREG(mode))
        return 0;
    if (S_ISDIR(mode))
        return 1;
    return S_ISLNK(mode) ? 2 : 3;
}

static uint64_t nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

size_t stat_record(uint8_t *place, int directory, const char *name, const char *shown, size_t length)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || length > NAME_LIMIT)
        return 0;
    ssize_t target = 0;
    memcpy(place + STAT_HEAD, shown, length);
    if (S_ISLNK(status.st_mode)) {
        target = readlinkat(directory, name, (char *)place + STAT_HEAD + length, LINK_MAX);
        if (target < 0)
            return 0;
    }
    place[0] = kind_of(status.st_mode);
    memset(place + 1, 0, 3);
    put32(place + 4, status.st_mode & 07777);
    put64(place + 8, (uint64_t)status.st_size);
    put64(place + 16, nanoseconds(status.st_mtim));
    put64(place + 24, nanoseconds(status.st_ctim));
    put64(place + 32, status.st_ino);
    put16(place + 40, (uint16_t)length);
    put16(place + 42, (uint16_t)target);
    return STAT_HEAD + length + (size_t)target;
}

uint8_t do_stat(struct operation *o)
{
    static uint8_t record[STAT_MAX];
    const char *name;
    int parent = path_open_parent(o->path, false, &name);
    if (parent < 0)
        return fault_of(errno);
    o->extra_length = stat_record(record, parent, name, "", 0);
    o->extra = record;
    return o->extra_length ? OK : fault_of(errno);
}

uint8_t do_remove(struct operation *o)
{
    struct stat status;
    const char *name;
    int parent = path_open_parent(o->path, false, &name);
    if (parent < 0)
        return fault_of(errno);
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return fault_of(errno);
    if (unlinkat(parent, name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0) == 0)
        return OK;
    return fault_of(errno);
}

static int add(struct list *list, const char *directory, const char *name)
{
    size_t above = strlen(directory), length = strlen(name);
    if (above + length + 2 > NAME_LIMIT)
        return ++list->left_out, 1; /* what stands beside it must not be lost */
    if (list->count == MAX_ENTRIES)
        return 0;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 1024;
        char **paths = realloc(list->paths, room * sizeof *paths);
        if (!paths)
            return 0;
        list->paths = paths;
        list->room = room;
    }
    char *path = malloc(above + length + 2);
    if (!path)
        return 0;
    memcpy(path, directory, above);
    if (above)
        path[above++] = '/';
    memcpy(path + above, name, length + 1);
    list->paths[list->count++] = path;
    return 1;
}

static int is_directory(DIR *stream, const struct dirent *entry)
{
    struct stat status;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0
        && S_ISDIR(status.st_mode);
}

/* One directory's entries into `list`, its directories into `below`. */
static int gather(int top, const char *directory, struct list *list, struct list *below)
{
    int walked = path_open_directory_at(top, directory, false);
    int fd = walked < 0 ? -1 : openat(walked, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (walked >= 0) {
        int number = errno;
        close(walked);
        errno = number;
    }
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream)
        return 0;
    const struct dirent *entry;
    while ((entry = readdir(stream))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (!add(list, directory, name))
            break;
        if (is_directory(stream, entry) && !add(below, directory, name))
            break;
    }
    closedir(stream);
    return 1;
}

static int by_bytes(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void give_all(const struct operation *o, int top, const struct list *list)
{
    static uint8_t records[64 * 1024];
    size_t filled = 0;
    uint64_t given = 0;
    for (size_t i = 0; i < list->count && given < o->b; i++) {
        const char *name;
        int parent = path_open_parent_at(top, list->paths[i], false, &name);
        size_t length = parent < 0 ? 0
                                   : stat_record(records + filled, parent, name, list->paths[i],
                                                 strlen(list->paths[i]));
        if (parent >= 0)
            close(parent);
        if (length == 0)
            continue; /* gone since it was listed */
        given++;
        filled += length;
        if (filled > sizeof records - STAT_MAX) {
            if (!operation_give(o, records, filled))
                return;
            filled = 0;
        }
    }
    operation_give(o, records, filled);
}

uint8_t do_list(struct operation *o)
{
    struct list all = {0}, level = {0};
    int top = path_open_directory(o->path);
    if (top < 0)
        return fault_of(errno);
    if (o->a == 0 || o->b == 0)
        return OK;
    if (!gather(top, "", &all, &level))
        return fault_of(errno);
    for (uint64_t depth = 1; depth < o->a && level.count > 0; depth++) {
        struct list next = {0};
        for (size_t i = 0; i < level.count && all.count < MAX_ENTRIES; i++)
            gather(top, level.paths[i], &all, &next); /* one that cannot be opened stays empty */
        level = next;
    }
    if (all.count)
        qsort(all.paths, all.count, sizeof *all.paths, by_bytes);
    give_all(o, top, &all);
    o->value = all.left_out;
    return OK;
}
