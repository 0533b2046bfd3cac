/* A card's own figures: identity, memory, load, clocks, heat, power, PCIe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answer.h"

#define TEXT(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, char *text, unsigned length) { \
        ENTER_CARD; \
        return answer_text(at.card, key, text, length); \
    }
TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")

#define UINT(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *value) { \
        ENTER_CARD; \
        return answer_uint(at.card, key, value); \
    }
UINT(nvmlDeviceGetBrand, "brand")
UINT(nvmlDeviceGetArchitecture, "architecture")
UINT(nvmlDeviceGetMinorNumber, "minor")
UINT(nvmlDeviceGetBoardId, "board_id")
UINT(nvmlDeviceGetMultiGpuBoard, "multi_gpu_board")
UINT(nvmlDeviceGetPersistenceMode, "persistence")
UINT(nvmlDeviceGetComputeMode, "compute_mode")
UINT(nvmlDeviceGetDisplayMode, "display.mode")
UINT(nvmlDeviceGetDisplayActive, "display.active")
UINT(nvmlDeviceGetPerformanceState, "pstate")
UINT(nvmlDeviceGetPowerState, "pstate")
UINT(nvmlDeviceGetVirtualizationMode, "virtualization")
UINT(nvmlDeviceGetNumGpuCores, "cores")
UINT(nvmlDeviceGetMemoryBusWidth, "memory.bus_width")
UINT(nvmlDeviceGetNumFans, "fans")
UINT(nvmlDeviceGetFanSpeed, "fan.0")
UINT(nvmlDeviceGetPowerUsage, "power.usage")
UINT(nvmlDeviceGetEnforcedPowerLimit, "power.enforced_limit")
UINT(nvmlDeviceGetPowerManagementLimit, "power.limit")
UINT(nvmlDeviceGetPowerManagementDefaultLimit, "power.default_limit")
UINT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.generation")
UINT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.max_generation")
UINT(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.max_generation")
UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
UINT(nvmlDeviceGetMaxPcieLinkWidth, "pcie.max_width")
UINT(nvmlDeviceGetPcieReplayCounter, "pcie.replays")

#define U64(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, u64 *value) { \
        ENTER_CARD; \
        return answer_u64(at.card, key, value); \
    }
U64(nvmlDeviceGetTotalEnergyConsumption, "energy")
U64(nvmlDeviceGetCurrentClocksThrottleReasons, "clocks.reasons")
U64(nvmlDeviceGetCurrentClocksEventReasons, "clocks.reasons")
U64(nvmlDeviceGetSupportedClocksThrottleReasons, "clocks.supported_reasons")
U64(nvmlDeviceGetSupportedClocksEventReasons, "clocks.supported_reasons")

#define PAIR(function, first, second) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *one, unsigned *two) { \
        ENTER_CARD; \
        TRY(answer_uint(at.card, first, one)); \
        return answer_uint(at.card, second, two); \
    }
PAIR(nvmlDeviceGetEncoderUtilization, "utilization.encoder", "utilization.period")
PAIR(nvmlDeviceGetDecoderUtilization, "utilization.decoder", "utilization.period")
PAIR(nvmlDeviceGetJpgUtilization, "utilization.jpg", "utilization.period")
PAIR(nvmlDeviceGetOfaUtilization, "utilization.ofa", "utilization.period")
PAIR(nvmlDeviceGetDriverModel, "driver_model.current", "driver_model.pending")
PAIR(nvmlDeviceGetDriverModel_v2, "driver_model.current", "driver_model.pending")
PAIR(nvmlDeviceGetCudaComputeCapability, "capability.major", "capability.minor")

/* A figure that is chosen by one number: a clock, a sensor, a fan, a direction. */
#define CHOSEN(function, format) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned choice, unsigned *value) { \
        char key[64]; \
        ENTER_CARD_FOR(choice); \
        return answer_uint(at.card, keyf(key, format, choice), value); \
    }
CHOSEN(nvmlDeviceGetClockInfo, "clock.%u")
CHOSEN(nvmlDeviceGetMaxClockInfo, "max_clock.%u")
CHOSEN(nvmlDeviceGetApplicationsClock, "application_clock.%u")
CHOSEN(nvmlDeviceGetTemperature, "temperature.%u")
CHOSEN(nvmlDeviceGetTemperatureThreshold, "threshold.%u")
CHOSEN(nvmlDeviceGetFanSpeed_v2, "fan.%u")
CHOSEN(nvmlDeviceGetPcieThroughput, "pcie.kbps.%u")

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *answer) {
    char key[64];
    unsigned degrees = 0;
    ENTER_CARD_FOR(answer->sensorType);
    if (answer->version != NVML_TEMPERATURE_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    TRY(answer_uint(at.card, keyf(key, "temperature.%u", answer->sensorType), &degrees));
    answer->temperature = (int)degrees;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
    ENTER_CARD;
    *index = (unsigned)(at.card->partition == WHOLE ? at.card->index : at.card->partition);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *load) {
    ENTER_CARD;
    TRY(answer_uint(at.card, "utilization.gpu", &load->gpu));
    return answer_uint(at.card, "utilization.memory", &load->memory);
}

static nvmlReturn_t take(const struct card *card, u64 *used, u64 *free_bytes) {
    u64 more = setting(card, "cuda") ? living_bytes(card) : 0;
    *used += more;
    *free_bytes -= more;
    return NVML_SUCCESS;
}

/* Since R510 `used` of the first call counts the driver's reserved part too (gpustat#141). */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    ENTER_CARD;
    TRY(answer_u64(at.card, "memory.total", &memory->total));
    TRY(answer_u64(at.card, "memory.free", &memory->free));
    TRY(answer_u64(at.card, "memory.v1_used", &memory->used));
    return take(at.card, &memory->used, &memory->free);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    ENTER_CARD;
    if (memory->version != NVML_MEMORY_V2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    TRY(answer_u64(at.card, "memory.total", &memory->total));
    TRY(answer_u64(at.card, "memory.reserved", &memory->reserved));
    TRY(answer_u64(at.card, "memory.free", &memory->free));
    TRY(answer_u64(at.card, "memory.used", &memory->used));
    return take(at.card, &memory->used, &memory->free);
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
    ENTER_CARD;
    TRY(answer_u64(at.card, "bar1.total", &memory->total));
    TRY(answer_u64(at.card, "bar1.free", &memory->free));
    return answer_u64(at.card, "bar1.used", &memory->used);
}

EXPORT nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device, nvmlConfComputeMemSizeInfo_t *memory) {
    ENTER_CARD;
    TRY(answer_u64(at.card, "confidential.protected_kib", &memory->protectedMemSizeKib));
    return answer_u64(at.card, "confidential.unprotected_kib", &memory->unprotectedMemSizeKib);
}

struct address {
    unsigned domain, bus, device, device_id, subsystem_id;
    char text[32], legacy[16];
};

static nvmlReturn_t address_of(const struct card *card, struct address *address) {
    const char *text = setting(card, "pci.address");
    unsigned function = 0;
    if (!text) return NVML_ERROR_NOT_SUPPORTED;
    if (sscanf(text, "%x:%x:%x.%x", &address->domain, &address->bus, &address->device, &function) != 4)
        return NVML_ERROR_UNKNOWN;
    snprintf(address->text, sizeof address->text, "%s", text);
    /* The old buffer has room for a domain of four digits. */
    snprintf(address->legacy, sizeof address->legacy, "%04X:%02X:%02X.%X", address->domain & 0xffff,
             address->bus & 0xff, address->device & 0xff, function & 0xf);
    TRY(answer_uint(card, "pci.device_id", &address->device_id));
    return answer_uint(card, "pci.subsystem_id", &address->subsystem_id);
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *info) {
    struct address of;
    ENTER_CARD;
    TRY(address_of(at.card, &of));
    *info = (nvmlPciInfo_v2_t){"", of.domain, of.bus, of.device, of.device_id, of.subsystem_id, {0}};
    memcpy(info->busId, of.legacy, sizeof info->busId);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info) {
    struct address of;
    ENTER_CARD;
    TRY(address_of(at.card, &of));
    *info = (nvmlPciInfo_t){"", of.domain, of.bus, of.device, of.device_id, of.subsystem_id, ""};
    memcpy(info->busIdLegacy, of.legacy, sizeof info->busIdLegacy);
    memcpy(info->busId, of.text, sizeof info->busId);
    return NVML_SUCCESS;
}

/* `set CARD field.82 uint 71`: a failing field answers in its own row, the call itself succeeds. */
static void read_field(const struct card *card, nvmlFieldValue_t *field) {
    char key[64];
    const char *text = setting(card, keyf(key, "field.%u", field->fieldId));
    const char *value = text ? strchr(text, ' ') : NULL;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    field->timestamp = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
    field->latencyUsec = 1;
    field->nvmlReturn = value ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    if (!value) return;
    if (strncmp(text, "double", 6) == 0) {
        field->valueType = 0;
        field->value.dVal = strtod(value + 1, NULL);
    } else {
        field->valueType = strncmp(text, "u64", 3) == 0 ? 3 : 1;
        field->value.ullVal = number(value + 1);
    }
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields) {
    ENTER_CARD;
    for (int i = 0; i < count; i++) {
        nvmlReturn_t code = gate(at.machine, at.card->index, at.card->partition, "field", (int)fields[i].fieldId);
        read_field(at.card, &fields[i]);
        if (code != NVML_SUCCESS) fields[i].nvmlReturn = code;
    }
    return NVML_SUCCESS;
}
