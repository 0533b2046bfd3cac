/* mappings COUNT: a process whose /proc/PID/maps has COUNT lines more than usual, half of them of a file, as one that
 * imported a framework has thousands. Says so with one byte on stdout, then sleeps until it is killed. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int own = open("/proc/self/exe", O_RDONLY);
    long page = sysconf(_SC_PAGESIZE);
    for (int i = 0, count = argc > 1 ? atoi(argv[1]) : 0; i < count; i++) {
        /* Neighbours of one kind would be merged into one line. */
        void *at = i % 2 ? mmap(NULL, (size_t)page, PROT_READ, MAP_PRIVATE, own, 0)
                         : mmap(NULL, (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return 1;
    }
    if (write(STDOUT_FILENO, "\n", 1) != 1) return 1;
    for (;;) pause();
}
