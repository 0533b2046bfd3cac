/* A stand-in for four symbols of a Mac's libSystem: `struct task_vm_info` as mach/task_info.h has it.
 *
 * Process 501 is this user's, 502 another's; 503 runs on a kernel that knows revision 2 only. */
#include <stdint.h>
#include <string.h>

#pragma pack(4)
struct task_vm_info {
    uint64_t virtual_size;
    int32_t region_count, page_size;
    uint64_t resident_size, resident_size_peak, device, device_peak, internal, internal_peak;
    uint64_t external, external_peak, reusable, reusable_peak;
    uint64_t purgeable_volatile_pmap, purgeable_volatile_resident, purgeable_volatile_virtual;
    uint64_t compressed, compressed_peak, compressed_lifetime;
    uint64_t phys_footprint;             /* revision 1 */
    uint64_t min_address, max_address;   /* revision 2 */
    int64_t ledger_phys_footprint_peak;  /* revision 3 */
    int64_t ledger_purgeable_nonvolatile, ledger_purgeable_novolatile_compressed;
    int64_t ledger_purgeable_volatile, ledger_purgeable_volatile_compressed;
    int64_t ledger_tag_network_nonvolatile, ledger_tag_network_nonvolatile_compressed;
    int64_t ledger_tag_network_volatile, ledger_tag_network_volatile_compressed;
    int64_t ledger_tag_media_footprint, ledger_tag_media_footprint_compressed;
    int64_t ledger_tag_media_nofootprint, ledger_tag_media_nofootprint_compressed;
    int64_t ledger_tag_graphics_footprint, ledger_tag_graphics_footprint_compressed;
    int64_t ledger_tag_graphics_nofootprint, ledger_tag_graphics_nofootprint_compressed;
    int64_t ledger_tag_neural_footprint, ledger_tag_neural_footprint_compressed;
    int64_t ledger_tag_neural_nofootprint, ledger_tag_neural_nofootprint_compressed;
};

uint32_t mach_task_self_ = 0x203;
int open_ports;

int task_name_for_pid(uint32_t self, int pid, uint32_t *port)
{
    if (self != mach_task_self_ || pid == 502)
        return 5;
    open_ports++;
    *port = 0x1000 + pid;
    return 0;
}

int task_info(uint32_t port, uint32_t flavor, void *out, uint32_t *count)
{
    struct task_vm_info info = {.virtual_size = 420ull << 30, .resident_size = 7 << 20};
    info.phys_footprint = 1395864371;
    info.ledger_tag_graphics_footprint = 1288490189;
    info.ledger_tag_graphics_footprint_compressed = 4194304;
    info.ledger_tag_graphics_nofootprint = 65536;
    if (flavor != 22 || *count < sizeof info / 4)
        return 4;
    if (port == 0x1000 + 503) {
        *count = 42;
        return 0;
    }
    memcpy(out, &info, sizeof info);
    *count = sizeof info / 4;
    return 0;
}

int mach_port_deallocate(uint32_t self, uint32_t port)
{
    (void)self, (void)port;
    return open_ports--, 0;
}
