/* MIG: partitions of a card and which card they belong to. */
#include "answer.h"

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    ENTER_CARD;
    TRY(answer_uint(at.card, "mig.current", current));
    return answer_uint(at.card, "mig.pending", pending);
}

/* 0, not an error, where MIG is off or unknown to the card. */
EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
    ENTER_CARD;
    if (answer_uint(at.card, "mig.max", count) != NVML_SUCCESS) *count = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *partition) {
    ENTER_CARD_FOR(index);
    struct card *found = find_card(at.machine, at.card->index, (int)index);
    if (!found) return NVML_ERROR_NOT_FOUND;
    *partition = handle_of(found);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *answer) {
    ENTER_CARD;
    *answer = at.card->partition != WHOLE;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *parent) {
    ENTER_CARD;
    struct card *found = find_card(at.machine, at.card->index, WHOLE);
    if (at.card->partition == WHOLE || !found) return NVML_ERROR_INVALID_ARGUMENT;
    *parent = handle_of(found);
    return NVML_SUCCESS;
}

#define INSTANCE(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *id) { \
        ENTER_CARD; \
        return answer_uint(at.card, key, id); \
    }
INSTANCE(nvmlDeviceGetGpuInstanceId, "instance.gpu")
INSTANCE(nvmlDeviceGetComputeInstanceId, "instance.compute")

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *to) {
    struct {
        const char *key;
        unsigned *to;
    } parts[] = {
        {"attributes.multiprocessors", &to->multiprocessorCount},
        {"attributes.copy_engines", &to->sharedCopyEngineCount},
        {"attributes.decoders", &to->sharedDecoderCount},
        {"attributes.encoders", &to->sharedEncoderCount},
        {"attributes.jpeg", &to->sharedJpegCount},
        {"attributes.ofa", &to->sharedOfaCount},
        {"attributes.gpu_slices", &to->gpuInstanceSliceCount},
        {"attributes.compute_slices", &to->computeInstanceSliceCount},
    };
    ENTER_CARD;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) TRY(answer_uint(at.card, parts[i].key, parts[i].to));
    return answer_u64(at.card, "attributes.memory_mib", &to->memorySizeMB);
}
