/* Processes that hold memory through the stand-in libcuda (cuda/cuda.c) at this moment. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "scenario.h"

/* Its bytes, or 0 when nobody holds the file's lock any more: the process is gone to its last thread. */
static u64 bytes_in(const char *folder, const char *name) {
    char path[4096], text[32] = "";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    int gone = flock(file, LOCK_SH | LOCK_NB) == 0;
    ssize_t got = gone ? 0 : pread(file, text, sizeof text - 1, 0);
    close(file);
    return got > 0 ? strtoull(text, NULL, 10) : 0;
}

int living(const struct card *card, struct process *to, int room) {
    const char *folder = setting(card, "cuda");
    DIR *listing = folder ? opendir(folder) : NULL;
    int count = 0;
    for (struct dirent *entry; listing && count < room && (entry = readdir(listing));) {
        unsigned pid = (unsigned)strtoul(entry->d_name, NULL, 10);
        u64 bytes = pid ? bytes_in(folder, entry->d_name) : 0;
        if (bytes) to[count++] = (struct process){'c', pid, ~0u, ~0u, bytes};
    }
    if (listing) closedir(listing);
    return count;
}

u64 living_bytes(const struct card *card) {
    struct process found[MAX_LIVING];
    u64 sum = 0;
    for (int i = living(card, found, MAX_LIVING); i > 0; i--) sum += found[i - 1].bytes;
    return sum;
}
