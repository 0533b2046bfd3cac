/* Reads the scenario file again whenever it has changed. */
#include "scenario.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ADD(array, count) \
    ((array) = realloc((array), (size_t)((count) + 1) * sizeof *(array)), \
     memset(&(array)[count], 0, sizeof *(array)), &(array)[(count)++])

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

u64 number(const char *text) { return strcmp(text, "n/a") == 0 ? ~0ULL : strtoull(text, NULL, 0); }

static void where(const char *word, int *index, int *partition) {
    *partition = WHOLE;
    if (strcmp(word, "*") == 0) {
        *index = ANY_CARD;
    } else if (strcmp(word, "-") == 0) {
        *index = SYSTEM;
    } else {
        const char *slash = strchr(word, '/');
        *index = atoi(word);
        if (slash) *partition = atoi(slash + 1);
    }
}

struct card *find_card(struct scenario *machine, int index, int partition) {
    for (int i = 0; i < machine->n_cards; i++)
        if (machine->cards[i].index == index && machine->cards[i].partition == partition) return &machine->cards[i];
    return NULL;
}

const char *setting(const struct card *card, const char *key) {
    if (!card) return NULL;
    for (int i = 0; i < card->n_settings; i++)
        if (strcmp(card->settings[i].key, key) == 0) return card->settings[i].value;
    return NULL;
}

static char *unescape(const char *text) {
    char *out = malloc(strlen(text) + 1), *to = out;
    while (*text) {
        unsigned byte;
        if (text[0] == '\\' && text[1] == 'x' && sscanf(text + 2, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            text += 4;
        } else {
            if (text[0] == '\\' && text[1] == '\\') text++;
            *to++ = *text++;
        }
    }
    *to = 0;
    return out;
}

static void read_rule(struct scenario *machine, const char *verb, char **word) {
    struct rule *rule = ADD(machine->rules, machine->n_rules);
    char *detail = strchr(word[2], ':');
    where(word[1], &rule->index, &rule->partition);
    rule->detail = detail ? atoi(detail + 1) : NO_DETAIL;
    if (detail) *detail = 0;
    rule->function = strdup(word[2]);
    rule->slow = strcmp(verb, "slow") == 0;
    rule->code = atoi(word[3]);
    rule->milliseconds = rule->code;
    rule->times = rule->slow ? -1 : atoi(word[4]);
    rule->after = rule->slow ? 0 : atoi(word[5]);
}

static void read_fact(struct scenario *machine, char **word, const char *rest) {
    int index, partition;
    where(word[1], &index, &partition);
    struct card *card = find_card(machine, index, partition);
    if (!card) {
        card = ADD(machine->cards, machine->n_cards);
        card->index = index;
        card->partition = partition;
    }
    if (strcmp(word[0], "set") == 0) {
        struct setting *one = ADD(card->settings, card->n_settings);
        one->key = strdup(word[2]);
        one->value = unescape(rest);
    } else if (strcmp(word[0], "process") == 0) {
        struct process *one = ADD(card->processes, card->n_processes);
        *one = (struct process){word[2][0], (unsigned)number(word[3]), (unsigned)number(word[5]),
                                (unsigned)number(word[6]), number(word[4])};
    } else if (strcmp(word[0], "sample") == 0) {
        struct sample *one = ADD(card->samples, card->n_samples);
        *one = (struct sample){atoll(word[3]),
                               (unsigned)number(word[2]),
                               (unsigned)number(word[4]),
                               (unsigned)number(word[5]),
                               (unsigned)number(word[6]),
                               (unsigned)number(word[7]),
                               (unsigned)number(word[8]),
                               (unsigned)number(word[9])};
    } else if (strcmp(word[0], "retired") == 0) {
        struct retired *one = ADD(card->retired, card->n_retired);
        *one = (struct retired){(unsigned)number(word[2]), number(word[3]), number(word[4])};
    }
}

static struct scenario *parse(FILE *file) {
    struct scenario *machine = calloc(1, sizeof *machine);
    char line[4096], copy[4096];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        strcpy(copy, line);
        char *word[10], *save = NULL, *rest = line;
        for (int i = 0; i < 10; i++) {
            word[i] = strtok_r(i ? NULL : copy, " ", &save);
            if (!word[i]) word[i] = "";
        }
        for (int i = 0; i < 3 && rest; i++) {
            rest = strchr(rest, ' ');
            if (rest) rest++;
        }
        if (strcmp(word[0], "fail") == 0 || strcmp(word[0], "slow") == 0)
            read_rule(machine, word[0], word);
        else if (word[0][0] && word[0][0] != '#')
            read_fact(machine, word, rest ? rest : "");
    }
    return machine;
}

struct scenario *scenario_now(void) {
    static struct scenario *current;
    static struct stat seen;
    const char *path = getenv("GPUSNAP_TEST_NVML");
    struct stat now;
    if (!path || stat(path, &now) != 0) {
        fprintf(stderr, "stand-in NVML: GPUSNAP_TEST_NVML does not name a file that can be read\n");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (!current || now.st_ino != seen.st_ino || now.st_size != seen.st_size ||
        memcmp(&now.st_mtim, &seen.st_mtim, sizeof now.st_mtim) != 0) {
        FILE *file = fopen(path, "r");
        if (file) {
            current = parse(file);
            seen = now;
            fclose(file);
        }
    }
    pthread_mutex_unlock(&lock);
    return current;
}

/* One line a call: `FUNCTION CARD`, so that a test can count what a command asked for. */
static void note_call(int index, int partition, const char *function) {
    const char *path = getenv("GPUSNAP_TEST_NVML_CALLS");
    if (!path) return;
    char line[160];
    int length = index < 0 ? snprintf(line, sizeof line, "%s -\n", function)
                 : partition < 0 ? snprintf(line, sizeof line, "%s %d\n", function, index)
                                 : snprintf(line, sizeof line, "%s %d/%d\n", function, index, partition);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return;
    if (write(fd, line, (size_t)length) != length) perror("stand-in NVML: GPUSNAP_TEST_NVML_CALLS");
    close(fd);
}

static void wait_for(int milliseconds) {
    if (milliseconds < 0)
        for (;;) pause();
    struct timespec span = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&span, NULL);
}

static int applies(const struct rule *rule, int index, int partition, const char *function, int detail) {
    if (rule->index != ANY_CARD && (rule->index != index || rule->partition != partition)) return 0;
    if (rule->index == ANY_CARD && index == SYSTEM) return 0;
    if (strcmp(rule->function, "*") != 0 && strcmp(rule->function, function) != 0) return 0;
    return rule->detail == NO_DETAIL || rule->detail == detail;
}

nvmlReturn_t gate(struct scenario *machine, int index, int partition, const char *function, int detail) {
    note_call(index, partition, function);
    nvmlReturn_t answer = NVML_SUCCESS;
    for (int i = 0; i < machine->n_rules; i++) {
        struct rule *rule = &machine->rules[i];
        if (!applies(rule, index, partition, function, detail)) continue;
        if (rule->slow) {
            wait_for(rule->milliseconds);
        } else if (rule->after > 0) {
            rule->after--;
        } else if (rule->times != 0 && answer == NVML_SUCCESS) {
            if (rule->times > 0) rule->times--;
            answer = rule->code;
        }
    }
    return answer;
}
