/* What the machine is made of at this moment, read from the file that GPUSNAP_TEST_NVML names.
 *
 * One fact a line; `#` begins a comment. CARD is an index (`0`), a MIG partition (`0/3`), `-` for the system, or,
 * in rules, `*` for all of them. Text keeps its blanks; `\xff` and `\\` stand for bytes.
 *
 *   card CARD                                    it exists
 *   set CARD KEY VALUE                           a figure or a text; `n/a` is the driver's all-ones sentinel
 *   process CARD KIND PID BYTES GI CI            KIND is compute, graphics or mps; `n/a` as above
 *   sample CARD PID TIME SM MEM ENC DEC JPG OFA  TIME in µs since 1970, or `-N`: N µs before the question
 *   retired CARD CAUSE ADDRESS TIME              a retired page
 *   fail CARD FUNCTION[:DETAIL] CODE TIMES AFTER TIMES -1: always; AFTER: so many calls are answered first
 *   slow CARD FUNCTION[:DETAIL] MILLISECONDS     -1: for ever
 *
 * FUNCTION is NVML's own name or `*`; DETAIL the first argument after the handle (a field id, a clock).
 * A key that a card does not have makes its call answer NVML_ERROR_NOT_SUPPORTED.
 */
#ifndef GPUSNAP_TEST_SCENARIO_H
#define GPUSNAP_TEST_SCENARIO_H

#include "nvml.h"

enum { ANY_CARD = -2, SYSTEM = -1, WHOLE = -1, NO_DETAIL = -1 };

struct setting {
    char *key, *value;
};

struct process {
    char kind;
    unsigned pid, gi, ci;
    u64 bytes;
};

struct sample {
    long long time;
    unsigned pid, sm, mem, enc, dec, jpg, ofa;
};

struct retired {
    unsigned cause;
    u64 address, time;
};

struct card {
    int index, partition;
    struct setting *settings;
    struct process *processes;
    struct sample *samples;
    struct retired *retired;
    int n_settings, n_processes, n_samples, n_retired;
};

struct rule {
    int index, partition;
    char *function;
    int detail, code, times, after;
    int slow;
    int milliseconds;
};

struct scenario {
    struct card *cards;
    struct rule *rules;
    int n_cards, n_rules;
};

/* The scenario as the file says now; NULL when the file can't be read. Old ones are kept: another thread may be in
 * the middle of one, and a test does not live long. */
struct scenario *scenario_now(void);

struct card *find_card(struct scenario *machine, int index, int partition);

/* NULL: this card has no such thing. */
const char *setting(const struct card *card, const char *key);

/* Counts the call, waits as `slow` says and returns what `fail` says. Called first by every exported function. */
nvmlReturn_t gate(struct scenario *machine, int index, int partition, const char *function, int detail);

/* `set CARD cuda FOLDER`: who has memory of the card through the stand-in libcuda now, and how much together. */
enum { MAX_LIVING = 64 };
int living(const struct card *card, struct process *to, int room);
u64 living_bytes(const struct card *card);

/* The numbers of a line: `n/a` is all ones. */
u64 number(const char *text);

#endif
