/* Walks that never follow a link: every component is opened by itself with O_NOFOLLOW. */
#ifndef PATHS_H
#define PATHS_H

#include <stdbool.h>

/* An absolute path's directory as an O_PATH descriptor, or -1 with errno (ELOOP for a link,
 * EINVAL for a relative path, an empty one, or one with `..`). */
int path_open_directory(const char *path);

/* The parent of the last component, which is left in `*name`. With `make`, missing directories
 * are created. The root itself gives "." as name. */
int path_open_parent(const char *path, bool make, const char **name);

/* The same from a directory on, `path` being relative to it. */
int path_open_parent_at(int start, const char *path, bool make, const char **name);
int path_open_directory_at(int start, const char *path, bool make);

#endif
