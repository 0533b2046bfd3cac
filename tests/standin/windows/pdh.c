/* A stand-in for the five functions of pdh.dll that gpusnap calls, with the real structs of 64-bit Windows.
 *
 * The first collection knows two processes, later ones a third: the array grows between the call that tells its
 * size and the one that fills it. Counters by their English names only, as PdhAddEnglishCounterW gives them.
 * PDH_NO_OBJECT: a system without GPU counters. PDH_GROWS: the array grows at every call, for ever. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define MORE_DATA 0x800007D2u
#define NO_OBJECT 0xC0000BB8u
#define INVALID_DATA 0xC0000BC6u
#define INVALID_ARGUMENT 0xC0000BBDu
#define FMT_LARGE 0x400u
#define FMT_DOUBLE_NOCAP100 0x8200u

typedef struct {
    uint32_t CStatus;
    union {
        int32_t longValue;
        double doubleValue;
        int64_t largeValue;
    };
} PDH_FMT_COUNTERVALUE;

typedef struct {
    wchar_t *szName;
    PDH_FMT_COUNTERVALUE FmtValue;
} PDH_FMT_COUNTERVALUE_ITEM_W;

static int collections, calls;
static const wchar_t *const LUID = L"_luid_0x00000000_0x0001D6F4_phys_0";

uint32_t PdhOpenQueryW(const wchar_t *source, uintptr_t user, void **query)
{
    static int it;
    (void)source, (void)user;
    collections = calls = 0;
    *query = &it;
    return 0;
}

uint32_t PdhAddEnglishCounterW(void *query, const wchar_t *path, uintptr_t user, void **counter)
{
    (void)query, (void)user;
    if (getenv("PDH_NO_OBJECT") || wcsncmp(path, L"\\GPU ", 5) != 0)
        return NO_OBJECT;
    if (wcsstr(path, L"Shared Usage"))
        return 0xC0000BB9u; /* NO_COUNTER */
    *counter = wcsdup(path);
    return 0;
}

uint32_t PdhCollectQueryData(void *query)
{
    (void)query;
    collections++;
    return 0;
}

uint32_t PdhCloseQuery(void *query)
{
    (void)query;
    return 0;
}

static uint32_t fill(PDH_FMT_COUNTERVALUE_ITEM_W *item, wchar_t **text, const wchar_t *name)
{
    wcscpy(*text, name);
    item->szName = *text;
    *text += wcslen(name) + 1;
    memset(&item->FmtValue, 0, sizeof item->FmtValue);
    return 0;
}

uint32_t PdhGetFormattedCounterArrayW(void *counter, uint32_t format, uint32_t *size, uint32_t *count, void *buffer)
{
    const wchar_t *path = counter;
    int share = wcsstr(path, L"Utilization") != NULL;
    int rows = collections > 1 ? 3 : 2;
    if (format != (share ? FMT_DOUBLE_NOCAP100 : FMT_LARGE))
        return INVALID_ARGUMENT;
    if (share && collections < 2)
        return INVALID_DATA;
    calls++;
    if (getenv("PDH_GROWS"))
        rows += calls;
    else if (buffer == NULL && rows == 3)
        rows = 2; /* the third comes after the size was told */
    uint32_t needed = rows * (sizeof(PDH_FMT_COUNTERVALUE_ITEM_W) + 80 * sizeof(wchar_t));
    if (buffer == NULL || *size < needed) {
        *size = needed;
        *count = rows;
        return MORE_DATA;
    }
    PDH_FMT_COUNTERVALUE_ITEM_W *items = buffer;
    wchar_t *text = (wchar_t *)(items + rows);
    for (int i = 0; i < rows; i++) {
        wchar_t name[80];
        swprintf(name, 80, L"pid_%d%ls%ls", 4242 + i, LUID, share ? L"_eng_0_engtype_3D" : L"");
        fill(&items[i], &text, name);
        items[i].FmtValue.CStatus = i == 1 ? 1 : 0;
        if (share)
            items[i].FmtValue.doubleValue = i == 2 ? 0.0 / 0.0 : 51.25 * (i + 1);
        else
            items[i].FmtValue.largeValue = 5368709120LL + i;
    }
    if (share && rows == 3)
        items[1].FmtValue.CStatus = 0xC0000BBAu; /* a process without a first sample */
    *count = rows;
    return 0;
}
