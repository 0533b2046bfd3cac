/* A stand-in libcuda.so.1: allocations that the stand-in NVML then sees, so that a whole life of a process on a card
 * can be played. GPUSNAP_TEST_CUDA names a folder; each process with a context keeps one file there, named by its pid,
 * with its bytes in it, and locks it. The lock goes when the kernel has closed the last descriptor, which is when a
 * real driver frees the memory: after the last thread, not when the first one becomes a zombie.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_INVALID_VALUE = 1 };

#define CONTEXT (512ULL << 20)
#define TOTAL (79ULL << 30)
#define GRANULE (2ULL << 20)
#define MAX_BLOCKS 64

static int file = -1;
static unsigned long long held, blocks[MAX_BLOCKS];

static int account(unsigned long long bytes) {
    char text[32];
    int length = snprintf(text, sizeof text, "%-20llu\n", bytes);
    if (file < 0) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d", getenv("GPUSNAP_TEST_CUDA"), (int)getpid());
        file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (file < 0 || flock(file, LOCK_EX) != 0) return 0;
    }
    held = bytes;
    return pwrite(file, text, (size_t)length, 0) == length;
}

EXPORT int cuInit(unsigned flags) { return flags || !getenv("GPUSNAP_TEST_CUDA") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }
EXPORT int cuDriverGetVersion(int *version) { return *version = 12090, CUDA_SUCCESS; }
EXPORT int cuDeviceGetCount(int *count) { return *count = 1, CUDA_SUCCESS; }
EXPORT int cuDeviceGet(int *device, int index) { return *device = index, index ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

/* Card 0's of the stand-in NVML: GPU-00000000-1111-2222-3333-444444444444. */
EXPORT int cuDeviceGetUuid_v2(char *uuid, int device) {
    static const char first[16] = {0, 0, 0, 0, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44};
    memcpy(uuid, first, sizeof first);
    return device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    *context = &file;
    return flags || device || !account(CONTEXT) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT int cuCtxSetCurrent(void *context) { return context == &file ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

EXPORT int cuCtxDestroy_v2(void *context) { return context == &file && account(0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    *total = TOTAL;
    *free_bytes = TOTAL - held;
    return CUDA_SUCCESS;
}

/* An address is the block's number, never memory. */
EXPORT int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
    unsigned long long rounded = (bytes + GRANULE - 1) / GRANULE * GRANULE;
    for (int i = 0; i < MAX_BLOCKS; i++) {
        if (blocks[i]) continue;
        blocks[i] = rounded;
        *address = (unsigned long long)i + 1;
        return account(held + rounded) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT int cuMemFree_v2(unsigned long long address) {
    if (!address || address > MAX_BLOCKS || !blocks[address - 1]) return CUDA_ERROR_INVALID_VALUE;
    unsigned long long bytes = blocks[address - 1];
    blocks[address - 1] = 0;
    return account(held - bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
