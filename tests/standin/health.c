/* ECC counters, retired pages and remapped rows. */
#include "answer.h"

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    ENTER_CARD;
    TRY(answer_uint(at.card, "ecc.current", current));
    return answer_uint(at.card, "ecc.pending", pending);
}

static const char *counter_key(char key[64], unsigned error, unsigned counter) {
    return keyf(key, "ecc.%s.%s", error ? "uncorrected" : "corrected", counter ? "aggregate" : "volatile");
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned error, unsigned counter, u64 *count) {
    char key[64];
    ENTER_CARD_FOR(error);
    return answer_u64(at.card, counter_key(key, error, counter), count);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned error, unsigned counter,
                                                    unsigned location, u64 *count) {
    char key[64], whole[64];
    ENTER_CARD_FOR(error);
    return answer_u64(at.card, keyf(key, "%s.%u", counter_key(whole, error, counter), location), count);
}

static nvmlReturn_t pages(const struct card *card, unsigned cause, unsigned *count, u64 *addresses, u64 *times) {
    unsigned found = 0;
    if (!setting(card, "retired_pages")) return NVML_ERROR_NOT_SUPPORTED;
    for (int i = 0; i < card->n_retired; i++) found += card->retired[i].cause == cause;
    if (!addresses || *count < found) {
        *count = found;
        return found ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
    }
    *count = 0;
    for (int i = 0; i < card->n_retired; i++) {
        if (card->retired[i].cause != cause) continue;
        if (times) times[*count] = card->retired[i].time;
        addresses[(*count)++] = card->retired[i].address;
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned cause, unsigned *count, u64 *addresses) {
    ENTER_CARD_FOR(cause);
    return pages(at.card, cause, count, addresses, (u64 *)0);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned cause, unsigned *count, u64 *addresses,
                                                 u64 *times) {
    ENTER_CARD_FOR(cause);
    return pages(at.card, cause, count, addresses, times);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned *pending) {
    ENTER_CARD;
    return answer_uint(at.card, "retired_pages.pending", pending);
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected,
                                              unsigned *pending, unsigned *failed) {
    ENTER_CARD;
    TRY(answer_uint(at.card, "remapped.corrected", corrected));
    TRY(answer_uint(at.card, "remapped.uncorrected", uncorrected));
    TRY(answer_uint(at.card, "remapped.pending", pending));
    return answer_uint(at.card, "remapped.failed", failed);
}
