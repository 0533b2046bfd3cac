/* A stand-in for Huawei's libdcmi.so: the calls that gpusnap makes, in the header's own types.
 *
 * Card 2 has two NPUs and a controller, card 8217 an NPU that does not support the process list.
 * DCMI_INIT: what dcmi_init returns. DCMI_PRINTS: what it prints. DCMI_HANGS: it never returns. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum dcmi_unit_type { NPU_TYPE = 0, MCU_TYPE = 1, CPU_TYPE = 2, INVALID_TYPE = 0xFF };

struct dcmi_proc_mem_info {
    int proc_id;
    unsigned long proc_mem_usage; /* bytes */
};

int dcmi_init(void)
{
    const char *words = getenv("DCMI_PRINTS");
    const char *code = getenv("DCMI_INIT");
    if (words)
        printf("%s", words), fflush(stdout);
    while (getenv("DCMI_HANGS"))
        sleep(1);
    return code ? atoi(code) : 0;
}

int dcmi_get_card_list(int *card_num, int *card_list, int list_len)
{
    if (list_len < 2)
        return -8001;
    card_list[0] = 2;
    card_list[1] = 8217;
    *card_num = 2;
    return 0;
}

int dcmi_get_device_num_in_card(int card_id, int *device_num)
{
    *device_num = card_id == 2 ? 3 : 1;
    return 0;
}

int dcmi_get_device_type(int card_id, int device_id, enum dcmi_unit_type *device_type)
{
    *device_type = card_id == 2 && device_id == 2 ? MCU_TYPE : NPU_TYPE;
    return 0;
}

int dcmi_get_device_resource_info(int card_id, int device_id, struct dcmi_proc_mem_info *proc_info, int *proc_num)
{
    if (card_id == 8217)
        return -8255;
    *proc_num = 0;
    if (device_id == 0) {
        proc_info[0] = (struct dcmi_proc_mem_info){51001, 42163241985UL};
        proc_info[1] = (struct dcmi_proc_mem_info){51002, 94371841UL};
        *proc_num = 2;
    }
    return 0;
}
