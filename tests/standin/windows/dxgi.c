/* A stand-in for dxgi.dll, dxcore.dll, gdi32.dll and ntdll.dll: tables of functions and structs as in the headers.
 *
 * Three adapters: a discrete one at 01:00.0, an integrated one with a carve-out at 65:00.0, Microsoft's Basic Render
 * Driver. DXGI_LEAKS counts what was opened and not let go. */
#include <stdint.h>
#include <string.h>
#include <wchar.h>

typedef int32_t HRESULT;
typedef struct { uint32_t a; uint16_t b, c; uint8_t d[8]; } GUID;
typedef struct { uint32_t LowPart; int32_t HighPart; } LUID;
typedef struct {
    wchar_t Description[128];
    uint32_t VendorId, DeviceId, SubSysId, Revision;
    size_t DedicatedVideoMemory, DedicatedSystemMemory, SharedSystemMemory;
    LUID AdapterLuid;
    uint32_t Flags;
} DXGI_ADAPTER_DESC1;

#define NOT_FOUND ((HRESULT)0x887A0002)
#define NO_INTERFACE ((HRESULT)0x80004002)

int open_objects;
typedef struct { void **table; int number; } Object;

static uint32_t release(Object *this)
{
    (void)this;
    return open_objects--, 0;
}

static const struct { const wchar_t *name; uint32_t vendor, device, low, flags, bus; size_t dedicated, shared; int integrated; } ADAPTERS[] = {
    {L"NVIDIA GeForce RTX 4060", 0x10DE, 0x2882, 0x1D6F4, 0, 0x01, 8442085376u, 17066450944u, 0},
    {L"AMD Radeon(TM) Graphics", 0x1002, 0x1681, 0x14DE1, 0, 0x65, 536870912u, 17066450944u, 1},
    {L"Microsoft Basic Render Driver", 0x1414, 0x8C, 0x1B2C3, 2, 0xFFFFFFFF, 0, 17066450944u, 0},
};

static HRESULT check_interface(Object *this, const GUID *wanted, int64_t *version)
{
    if (wanted->a != 0x54EC77FA || wanted->b != 0x1377 || wanted->d[7] != 0x4C)
        return NO_INTERFACE;
    *version = (32LL << 48) | (15LL << 16) | 6636;
    return this->number == 2 ? NO_INTERFACE : 0;
}

static HRESULT get_desc1(Object *this, DXGI_ADAPTER_DESC1 *desc)
{
    memset(desc, 0, sizeof *desc);
    wcscpy(desc->Description, ADAPTERS[this->number].name);
    desc->VendorId = ADAPTERS[this->number].vendor;
    desc->DeviceId = ADAPTERS[this->number].device;
    desc->DedicatedVideoMemory = ADAPTERS[this->number].dedicated;
    desc->SharedSystemMemory = ADAPTERS[this->number].shared;
    desc->AdapterLuid.LowPart = ADAPTERS[this->number].low;
    desc->Flags = ADAPTERS[this->number].flags;
    return 0;
}

static void *ADAPTER_TABLE[] = {0, 0, release, 0, 0, 0, 0, 0, 0, check_interface, get_desc1};
static Object adapters[] = {{ADAPTER_TABLE, 0}, {ADAPTER_TABLE, 1}, {ADAPTER_TABLE, 2}};

static HRESULT enum_adapters1(Object *this, uint32_t index, Object **adapter)
{
    (void)this;
    if (index >= 3)
        return NOT_FOUND;
    open_objects++;
    *adapter = &adapters[index];
    return 0;
}

static void *FACTORY_TABLE[] = {0, 0, release, 0, 0, 0, 0, 0, 0, 0, 0, 0, enum_adapters1};
static Object factory = {FACTORY_TABLE, 0};

HRESULT CreateDXGIFactory1(const GUID *wanted, Object **made)
{
    if (wanted->a != 0x770AAE78 || wanted->b != 0xF26F || wanted->c != 0x4DBA || wanted->d[0] != 0xA8)
        return NO_INTERFACE;
    open_objects++;
    *made = &factory;
    return 0;
}

/* dxcore.dll */
static HRESULT get_property(Object *this, uint32_t property, size_t size, void *value)
{
    if (property != 12 || size != 1)
        return NO_INTERFACE;
    *(unsigned char *)value = ADAPTERS[this->number].integrated;
    return 0;
}

static void *CORE_ADAPTER_TABLE[] = {0, 0, release, 0, 0, 0, get_property};
static Object core_adapters[] = {{CORE_ADAPTER_TABLE, 0}, {CORE_ADAPTER_TABLE, 1}, {CORE_ADAPTER_TABLE, 2}};

static HRESULT by_luid(Object *this, const LUID *luid, const GUID *wanted, Object **adapter)
{
    (void)this;
    if (wanted->a != 0xF0DB4C7F)
        return NO_INTERFACE;
    for (int i = 0; i < 2; i++)
        if (ADAPTERS[i].low == luid->LowPart) {
            open_objects++;
            *adapter = &core_adapters[i];
            return 0;
        }
    return NOT_FOUND;
}

static void *CORE_FACTORY_TABLE[] = {0, 0, release, 0, by_luid};
static Object core_factory = {CORE_FACTORY_TABLE, 0};

HRESULT DXCoreCreateAdapterFactory(const GUID *wanted, Object **made)
{
    if (wanted->a != 0x78EE5945)
        return NO_INTERFACE;
    open_objects++;
    *made = &core_factory;
    return 0;
}

/* gdi32.dll */
typedef struct { LUID AdapterLuid; uint32_t hAdapter; } OPENADAPTERFROMLUID;
typedef struct { uint32_t hAdapter, Type; void *pPrivateDriverData; uint32_t PrivateDriverDataSize; } QUERYADAPTERINFO;

int32_t D3DKMTOpenAdapterFromLuid(OPENADAPTERFROMLUID *open)
{
    for (int i = 0; i < 3; i++)
        if (ADAPTERS[i].low == open->AdapterLuid.LowPart) {
            open_objects++;
            open->hAdapter = 0x40000000 + i;
            return 0;
        }
    return (int32_t)0xC000000D;
}

int32_t D3DKMTQueryAdapterInfo(const QUERYADAPTERINFO *query)
{
    uint32_t *address = query->pPrivateDriverData;
    if (query->Type != 6 || query->PrivateDriverDataSize != 12)
        return (int32_t)0xC000000D;
    address[0] = ADAPTERS[query->hAdapter - 0x40000000].bus;
    address[1] = address[2] = address[0] == 0xFFFFFFFF ? 0xFFFFFFFF : 0;
    return 0;
}

int32_t D3DKMTCloseAdapter(const uint32_t *handle)
{
    (void)handle;
    return open_objects--, 0;
}

/* ntdll.dll: SYSTEM_TIMEOFDAY_INFORMATION; the clock was put forward by an hour since the start. */
uint32_t NtQuerySystemInformation(uint32_t kind, void *buffer, uint32_t size, uint32_t *returned)
{
    int64_t *words = buffer;
    (void)returned;
    if (kind != 3 || size != 48)
        return 0xC0000004;
    words[0] = 134088912000000000 + 36000000000;
    words[4] = 36000000000;
    return 0;
}
