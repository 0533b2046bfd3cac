/* The part of NVML's interface that the stand-in speaks.
 *
 * Layouts and numbers are those that nvidia-ml-py (pynvml.py, 13.615) declares, which follows NVIDIA's nvml.h.
 * The file is our own; only what a test can reach is here.
 */
#ifndef GPUSNAP_TEST_NVML_H
#define GPUSNAP_TEST_NVML_H

#define EXPORT __attribute__((visibility("default")))

typedef int nvmlReturn_t;
enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
};

typedef unsigned long long u64;
typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
    char busId[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    unsigned reserved[4];
} nvmlPciInfo_v2_t;

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct {
    u64 total, free, used;
} nvmlMemory_t;

#define NVML_MEMORY_V2 0x02000028u
typedef struct {
    unsigned version;
    u64 total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    u64 total, free, used;
} nvmlBAR1Memory_t;

typedef struct {
    u64 protectedMemSizeKib, unprotectedMemSizeKib;
} nvmlConfComputeMemSizeInfo_t;

typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;

/* The unversioned call of drivers before R450. */
typedef struct {
    unsigned pid;
    u64 usedGpuMemory;
} nvmlProcessInfo_v1_t;

/* _v2 and _v3 share a layout. */
typedef struct {
    unsigned pid;
    u64 usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

#define NVML_PROCESS_DETAIL_LIST_V1 0x1000018u
/* Also what driver 535.54.03 wrote from its _v3 calls, where callers expected nvmlProcessInfo_t. */
typedef struct {
    unsigned pid;
    u64 usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
    u64 usedGpuCcProtectedMemory;
} nvmlProcessDetail_t;

typedef struct {
    unsigned version, mode, numProcArrayEntries;
    nvmlProcessDetail_t *procArray;
} nvmlProcessDetailList_t;

typedef struct {
    unsigned pid;
    u64 timeStamp;
    unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    u64 timeStamp;
    unsigned pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_t;

#define NVML_PROCESSES_UTILIZATION_V1 0x01000018u
typedef struct {
    unsigned version, processSamplesCount;
    u64 lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_t *procUtilArray;
} nvmlProcessesUtilizationInfo_t;

typedef union {
    double dVal;
    unsigned uiVal;
    unsigned long ulVal;
    u64 ullVal;
    long long sllVal;
    int siVal;
    unsigned short usVal;
} nvmlValue_t;

typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    int valueType, nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

#define NVML_TEMPERATURE_V1 0x100000Cu
typedef struct {
    unsigned version, sensorType;
    int temperature;
} nvmlTemperature_t;

typedef struct {
    unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount,
        sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    u64 memorySizeMB;
} nvmlDeviceAttributes_t;

#endif
