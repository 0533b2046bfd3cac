/* launch COMMAND ARG..: runs it with its output to /dev/null and prints what it cost:
 * `EXIT CPU_US WALL_US PEAK_KIB`.
 *
 * In C for the sake of the peak: Linux carries the memory of the process that forks over into ru_maxrss of the one
 * that is executed, so that nothing started from Python can be seen to need less than Python.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long microseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

int main(int argc, char **argv) {
    int status;
    struct rusage used;
    if (argc < 2) return 2;
    long began = microseconds(CLOCK_MONOTONIC);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child) return 1;
    long wall = microseconds(CLOCK_MONOTONIC) - began;
    long cpu = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    printf("%d %ld %ld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), cpu, wall,
           used.ru_maxrss);
    return 0;
}
