/* Many small processes that hold descriptors: descriptors PROCESSES FDS [PATH ODD]
 *
 * Every process holds FDS descriptors of /dev/null; every ODDth one holds PATH in place of the last. Prints "." when
 * all stand, leaves when standard input ends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int processes = atoi(argv[1]), fds = atoi(argv[2]), odd = argc > 4 ? atoi(argv[4]) : 0;
    pid_t parent = getpid();
    signal(SIGCHLD, SIG_IGN);
    for (int number = 0; number < processes; number++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                return 0;
            int null = open("/dev/null", O_RDWR);
            dup2(null, 0);
            dup2(null, 1);
            for (int fd = 3; fd < fds; fd++)
                dup2(null, fd);
            if (odd && number % odd == 0) {
                int node = open(argv[3], O_RDONLY | O_NONBLOCK);
                if (node >= 0)
                    dup2(node, fds - 1);
                if (node >= fds)
                    close(node);
            }
            for (;;)
                pause();
        }
    }
    if (write(1, ".", 1) != 1)
        return 1;
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    return 0;
}
