/* Start and end, versions, error texts, and how cards are found. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "answer.h"

static atomic_int started;

/* A handle is no address: 1-based index and partition, so that it outlives a scenario that changes. */
nvmlDevice_t handle_of(const struct card *card) {
    return (nvmlDevice_t)(((uintptr_t)card->index + 1) << 16 | (uintptr_t)(card->partition + 1));
}

static nvmlReturn_t begin(struct context *at) {
    at->card = NULL;
    if (atomic_load(&started) <= 0) return NVML_ERROR_UNINITIALIZED;
    at->machine = scenario_now();
    return at->machine ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t enter_system(struct context *at, const char *function) {
    TRY(begin(at));
    at->card = find_card(at->machine, SYSTEM, WHOLE);
    return gate(at->machine, SYSTEM, WHOLE, function, NO_DETAIL);
}

nvmlReturn_t enter_card(struct context *at, nvmlDevice_t device, const char *function, int detail) {
    uintptr_t number = (uintptr_t)device;
    TRY(begin(at));
    if (!device) return NVML_ERROR_INVALID_ARGUMENT;
    at->card = find_card(at->machine, (int)(number >> 16) - 1, (int)(number & 0xffff) - 1);
    if (!at->card) return NVML_ERROR_INVALID_ARGUMENT;
    return gate(at->machine, at->card->index, at->card->partition, function, detail);
}

nvmlReturn_t answer_u64(const struct card *card, const char *key, u64 *value) {
    const char *text = setting(card, key);
    if (!text) return NVML_ERROR_NOT_SUPPORTED;
    if (!value) return NVML_ERROR_INVALID_ARGUMENT;
    *value = number(text);
    return NVML_SUCCESS;
}

nvmlReturn_t answer_uint(const struct card *card, const char *key, unsigned *value) {
    u64 wide = 0;
    if (!value) return NVML_ERROR_INVALID_ARGUMENT;
    TRY(answer_u64(card, key, &wide));
    *value = (unsigned)wide;
    return NVML_SUCCESS;
}

nvmlReturn_t answer_text(const struct card *card, const char *key, char *buffer, unsigned size) {
    const char *text = setting(card, key);
    if (!text) return NVML_ERROR_NOT_SUPPORTED;
    if (!buffer) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= size) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return NVML_SUCCESS;
}

const char *keyf(char buffer[64], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(buffer, 64, format, args);
    va_end(args);
    return buffer;
}

/* Every spelling of init is one function to a scenario: `fail - nvmlInit 9`. */
static nvmlReturn_t start(void) {
    struct scenario *machine = scenario_now();
    if (!machine) return NVML_ERROR_UNKNOWN;
    TRY(gate(machine, SYSTEM, WHOLE, "nvmlInit", NO_DETAIL));
    atomic_fetch_add(&started, 1);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInit(void) { return start(); }
EXPORT nvmlReturn_t nvmlInit_v2(void) { return start(); }
EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) { return (void)flags, start(); }

EXPORT nvmlReturn_t nvmlShutdown(void) {
    ENTER_SYSTEM;
    atomic_fetch_sub(&started, 1);
    return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t code) {
    static const char *const texts[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power",
        "Driver Not Loaded", "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found",
        "Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires restart",
        "The operating system has blocked the request.", "RM has detected an NVML/RM version mismatch.",
        "In use by another client", "Insufficient Memory", "No data", "VGPU ECC not supported",
        "Insufficient resources", "Frequency not supported", "Argument version mismatch", "Deprecated",
        "Not ready", "No GPUs were found", "Invalid state", "Reset type not supported"};
    return code >= 0 && code < (int)(sizeof texts / sizeof *texts) ? texts[code] : "Unknown Error";
}

#define SYSTEM_TEXT(function, key) \
    EXPORT nvmlReturn_t function(char *text, unsigned length) { \
        ENTER_SYSTEM; \
        return answer_text(at.card, key, text, length); \
    }
SYSTEM_TEXT(nvmlSystemGetDriverVersion, "driver")
SYSTEM_TEXT(nvmlSystemGetNVMLVersion, "nvml")

#define SYSTEM_UINT(function, key) \
    EXPORT nvmlReturn_t function(unsigned *value) { \
        ENTER_SYSTEM; \
        return answer_uint(at.card, key, value); \
    }
SYSTEM_UINT(nvmlSystemGetCudaDriverVersion, "cuda")
SYSTEM_UINT(nvmlSystemGetCudaDriverVersion_v2, "cuda")

static int whole_cards(const struct scenario *machine) {
    int count = 0;
    for (int i = 0; i < machine->n_cards; i++) count += machine->cards[i].index >= 0 && machine->cards[i].partition == WHOLE;
    return count;
}

#define CARD_COUNT(function) \
    EXPORT nvmlReturn_t function(unsigned *count) { \
        ENTER_SYSTEM; \
        *count = (unsigned)whole_cards(at.machine); \
        return NVML_SUCCESS; \
    }
CARD_COUNT(nvmlDeviceGetCount)
CARD_COUNT(nvmlDeviceGetCount_v2)

static nvmlReturn_t open_card(const char *function, struct card *card, nvmlDevice_t *device) {
    struct context at;
    if (!card) return NVML_ERROR_NOT_FOUND;
    *device = handle_of(card);
    return enter_card(&at, *device, function, NO_DETAIL);
}

#define BY_INDEX(function) \
    EXPORT nvmlReturn_t function(unsigned index, nvmlDevice_t *device) { \
        struct context at; \
        TRY(begin(&at)); \
        struct card *card = find_card(at.machine, (int)index, WHOLE); \
        return card ? open_card(__func__, card, device) : NVML_ERROR_INVALID_ARGUMENT; \
    }
BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

#define BY_TEXT(function, key) \
    EXPORT nvmlReturn_t function(const char *wanted, nvmlDevice_t *device) { \
        struct context at; \
        TRY(begin(&at)); \
        struct card *found = NULL; \
        for (int i = 0; wanted && i < at.machine->n_cards && !found; i++) { \
            const char *value = setting(&at.machine->cards[i], key); \
            if (value && strcasecmp(value, wanted) == 0) found = &at.machine->cards[i]; \
        } \
        return open_card(__func__, found, device); \
    }
BY_TEXT(nvmlDeviceGetHandleByUUID, "uuid")
BY_TEXT(nvmlDeviceGetHandleByPciBusId, "pci.address")
BY_TEXT(nvmlDeviceGetHandleByPciBusId_v2, "pci.address")
BY_TEXT(nvmlDeviceGetHandleBySerial, "serial")
