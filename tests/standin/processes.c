/* Who is on a card: the three lists in every version, and what each process kept busy. */
#include <string.h>
#include <time.h>

#include "answer.h"

enum layout { SIXTEEN_BYTES, TWENTY_FOUR_BYTES, THIRTY_TWO_BYTES };

/* A whole card also lists what runs on its partitions. */
static int is_listed(const struct card *asked, const struct card *owner) {
    return owner == asked || (asked->partition == WHOLE && owner->index == asked->index);
}

static void write_one(char *to, const struct process *one, enum layout layout) {
    if (layout == SIXTEEN_BYTES) {
        *(nvmlProcessInfo_v1_t *)to = (nvmlProcessInfo_v1_t){one->pid, one->bytes};
    } else if (layout == TWENTY_FOUR_BYTES) {
        *(nvmlProcessInfo_t *)to = (nvmlProcessInfo_t){one->pid, one->bytes, one->gi, one->ci};
    } else {
        *(nvmlProcessDetail_t *)to = (nvmlProcessDetail_t){one->pid, one->bytes, one->gi, one->ci, 0};
    }
}

static size_t size_of(enum layout layout) {
    return layout == SIXTEEN_BYTES       ? sizeof(nvmlProcessInfo_v1_t)
           : layout == TWENTY_FOUR_BYTES ? sizeof(nvmlProcessInfo_t)
                                         : sizeof(nvmlProcessDetail_t);
}

struct listing {
    const char *kinds; /* the first letters of the lists that are meant */
    enum layout layout;
    char *to; /* NULL: count only */
    size_t room;
    unsigned count;
};

static void write_some(struct listing *listing, const struct process *some, int number) {
    size_t size = size_of(listing->layout);
    for (int i = 0; i < number; i++) {
        if (!strchr(listing->kinds, some[i].kind)) continue;
        if (listing->to && (listing->count + 1) * size <= listing->room)
            write_one(listing->to + listing->count * size, &some[i], listing->layout);
        listing->count++;
    }
}

static unsigned write_list(const struct context *at, const char *kinds, enum layout layout, char *to, size_t room) {
    struct listing listing = {kinds, layout, to, room, 0};
    struct process found[MAX_LIVING];
    for (int i = 0; i < at->machine->n_cards; i++) {
        const struct card *owner = &at->machine->cards[i];
        if (!is_listed(at->card, owner)) continue;
        write_some(&listing, owner->processes, owner->n_processes);
        write_some(&listing, found, living(owner, found, MAX_LIVING));
    }
    return listing.count;
}

static nvmlReturn_t list(const struct context *at, const char *kinds, enum layout layout, unsigned *count, void *to) {
    unsigned running = write_list(at, kinds, layout, NULL, 0), room = *count;
    *count = running;
    if (running == 0) return NVML_SUCCESS;
    if (!to || room < running) return NVML_ERROR_INSUFFICIENT_SIZE;
    write_list(at, kinds, layout, to, room * size_of(layout));
    return NVML_SUCCESS;
}

/* Driver 535.54.03 wrote records of 32 bytes where its callers read 24: the first row is right, the rest is
 * scrambled (gpustat#161, pynvml#50). `set - process_layout 535` does so here. */
static nvmlReturn_t list_v3(const struct context *at, const char *kinds, unsigned *count, void *to) {
    const char *layout = setting(find_card(at->machine, SYSTEM, WHOLE), "process_layout");
    unsigned room = *count;
    nvmlReturn_t code = list(at, kinds, TWENTY_FOUR_BYTES, count, to);
    if (code == NVML_SUCCESS && to && layout && strcmp(layout, "535") == 0)
        write_list(at, kinds, THIRTY_TWO_BYTES, to, room * size_of(TWENTY_FOUR_BYTES));
    return code;
}

#define LIST(function, kinds, call) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *count, void *to) { \
        ENTER_CARD; \
        return call; \
    }
#define LISTS(name, kinds) \
    LIST(name, kinds, list(&at, kinds, SIXTEEN_BYTES, count, to)) \
    LIST(name##_v2, kinds, list(&at, kinds, TWENTY_FOUR_BYTES, count, to)) \
    LIST(name##_v3, kinds, list_v3(&at, kinds, count, to))
LISTS(nvmlDeviceGetComputeRunningProcesses, "c")
LISTS(nvmlDeviceGetGraphicsRunningProcesses, "g")
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, "m")

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *details) {
    static const char *const kinds[] = {"c", "g", "m", "cgm"};
    ENTER_CARD_FOR(details->mode);
    if (details->version != NVML_PROCESS_DETAIL_LIST_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (details->mode > 3) return NVML_ERROR_INVALID_ARGUMENT;
    if (at.card->partition != WHOLE) return NVML_ERROR_NOT_SUPPORTED;
    return list(&at, kinds[details->mode], THIRTY_TWO_BYTES, &details->numProcArrayEntries, details->procArray);
}

static u64 time_of(const struct sample *sample) {
    struct timespec now;
    if (sample->time >= 0) return (u64)sample->time;
    clock_gettime(CLOCK_REALTIME, &now);
    return (u64)(now.tv_sec * 1000000LL + now.tv_nsec / 1000 + sample->time);
}

static unsigned fresh(const struct card *card, u64 since) {
    unsigned count = 0;
    for (int i = 0; i < card->n_samples; i++) count += time_of(&card->samples[i]) > since;
    return count;
}

/* The driver's buffer has nothing to say about a partition, and "no sample" is not an empty list. */
static nvmlReturn_t sized(const struct card *card, u64 since, unsigned *count, const void *to) {
    unsigned have = fresh(card, since), room = *count;
    const char *mig = setting(card, "mig.current");
    if (card->partition != WHOLE || (mig && strcmp(mig, "1") == 0)) return NVML_ERROR_NOT_SUPPORTED;
    *count = have;
    if (have == 0) return NVML_ERROR_NOT_FOUND;
    return to && room >= have ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *to,
                                                    unsigned *count, u64 since) {
    unsigned at_row = 0;
    ENTER_CARD;
    TRY(sized(at.card, since, count, to));
    for (int i = 0; i < at.card->n_samples && at_row < *count; i++) {
        const struct sample *one = &at.card->samples[i];
        if (time_of(one) > since)
            to[at_row++] = (nvmlProcessUtilizationSample_t){one->pid, time_of(one), one->sm, one->mem, one->enc,
                                                            one->dec};
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info) {
    unsigned at_row = 0;
    ENTER_CARD;
    if (info->version != NVML_PROCESSES_UTILIZATION_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    TRY(sized(at.card, info->lastSeenTimeStamp, &info->processSamplesCount, info->procUtilArray));
    for (int i = 0; i < at.card->n_samples && at_row < info->processSamplesCount; i++) {
        const struct sample *one = &at.card->samples[i];
        if (time_of(one) > info->lastSeenTimeStamp)
            info->procUtilArray[at_row++] = (nvmlProcessUtilizationInfo_t){
                time_of(one), one->pid, one->sm, one->mem, one->enc, one->dec, one->jpg, one->ofa};
    }
    return NVML_SUCCESS;
}
