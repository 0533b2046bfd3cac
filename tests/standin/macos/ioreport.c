/* A stand-in for what is used of a Mac's libIOReport, CoreFoundation and mach_time.h, in one library.
 *
 * `struct element` is IOReportElement of XNU's IOKit/IOReportTypes.h. Create and Copy give an object that somebody
 * has to release, Get lends one: `open_objects` counts. `scenario`: 0 as on an M5; 1 a virtual machine, which has no
 * such group; 2 no subscription; 3 elements of another layout; 4 elements of another size; 5 no sample. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#pragma pack(1)
struct element {
    uint64_t provider_id, channel_id;
    uint8_t report_format, reserved;
    uint16_t categories, nelements;
    int16_t element_idx;
    uint64_t timestamp; /* mach_absolute_time() */
    int64_t simple_value;
    uint64_t reserved1, reserved2, reserved3;
};
#pragma pack()
_Static_assert(sizeof(struct element) == 64, "as in the header");

struct object {
    enum { STRING, DICTIONARY, ARRAY, DATA, SAMPLE, CHANNEL, SUBSCRIPTION } kind;
    char text[64];
    struct object *name, *unit, *data, *array;
    struct element element;
    struct object *channels[3];
};
typedef struct object *object;

int scenario, open_objects, samples;
static uint64_t clock_ticks = 1000000000000;

static object make(int kind, const char *text)
{
    object made = calloc(1, sizeof *made);
    made->kind = kind;
    strncpy(made->text, text, sizeof made->text - 1);
    return made;
}

static object lent(object made)
{
    open_objects++;
    return made;
}

object CFStringCreateWithCString(void *allocator, const char *text, uint32_t encoding)
{
    assert(!allocator && encoding == 0x08000100);
    return lent(make(STRING, text));
}

unsigned char CFStringGetCString(object string, char *out, long size, uint32_t encoding)
{
    assert(string->kind == STRING && encoding == 0x08000100);
    if ((long)strlen(string->text) >= size)
        return 0;
    strcpy(out, string->text);
    return 1;
}

object CFDictionaryGetValue(object dictionary, object key)
{
    if (dictionary->kind == SAMPLE && !strcmp(key->text, "IOReportChannels"))
        return dictionary->array;
    if (dictionary->kind == CHANNEL && !strcmp(key->text, "RawElements"))
        return dictionary->data;
    return NULL;
}

object CFDictionaryCreateMutableCopy(void *allocator, long capacity, object dictionary)
{
    assert(!allocator && !capacity && dictionary->kind == DICTIONARY);
    return lent(make(DICTIONARY, dictionary->text));
}

long CFArrayGetCount(object array)
{
    assert(array->kind == ARRAY);
    return 3;
}

object CFArrayGetValueAtIndex(object array, long index)
{
    assert(array->kind == ARRAY && index < 3);
    return array->channels[index];
}

long CFDataGetLength(object data)
{
    assert(data->kind == DATA);
    return scenario == 4 ? 72 : 64;
}

const void *CFDataGetBytePtr(object data)
{
    assert(data->kind == DATA);
    return &data->element;
}

void CFRelease(object held)
{
    assert(held);
    open_objects--;
    if (held->kind != SAMPLE && held->kind != SUBSCRIPTION)
        free(held);
}

object IOReportCopyChannelsInGroup(object group, object subgroup, uint64_t a, uint64_t b, uint64_t c)
{
    assert(!subgroup && !a && !b && !c);
    if (scenario == 1 || strcmp(group->text, "Energy Model"))
        return NULL;
    return lent(make(DICTIONARY, "wanted"));
}

object IOReportCreateSubscription(void *a, object wanted, object *subscribed, uint64_t id, void *b)
{
    assert(!a && !id && !b && wanted->kind == DICTIONARY);
    if (scenario == 2)
        return NULL;
    *subscribed = lent(make(DICTIONARY, "subscribed"));
    return lent(make(SUBSCRIPTION, ""));
}

static object channel(const char *name, const char *unit, int64_t value, uint64_t stamp)
{
    object made = make(CHANNEL, "");
    made->name = make(STRING, name);
    made->unit = make(STRING, unit);
    made->data = make(DATA, "");
    made->element.simple_value = value;
    made->data->element = (struct element){.report_format = 1, .nelements = 1, .timestamp = stamp};
    made->data->element.simple_value = scenario == 3 ? 7 : value;
    return made;
}

object IOReportCreateSamples(object subscription, object subscribed, void *options)
{
    assert(subscription->kind == SUBSCRIPTION && !strcmp(subscribed->text, "subscribed") && !options);
    if (scenario == 5)
        return NULL;
    object sample = make(SAMPLE, "");
    sample->array = make(ARRAY, "");
    clock_ticks += 24000000; /* a second later; 12.5 J more */
    int64_t energy = 5000000000000 + 12500000000 * samples++;
    sample->array->channels[0] = channel("DIE_0_CPU Energy", "mJ", 4606, clock_ticks - 9000000);
    sample->array->channels[1] = channel("GPU Energy", "nJ", energy, clock_ticks - 2400);
    sample->array->channels[2] = channel("GPU0_0", " mJ ", energy / 1000000, clock_ticks - 9000000);
    return lent(sample);
}

object IOReportChannelGetChannelName(object channel)
{
    assert(channel->kind == CHANNEL);
    return channel->name;
}

object IOReportChannelGetUnitLabel(object channel)
{
    assert(channel->kind == CHANNEL);
    return channel->unit;
}

int64_t IOReportSimpleGetIntegerValue(object channel, void *status)
{
    assert(channel->kind == CHANNEL && !status);
    return channel->element.simple_value;
}

uint64_t mach_absolute_time(void)
{
    return clock_ticks;
}

int mach_timebase_info(uint32_t *out)
{
    out[0] = 125, out[1] = 3;
    return 0;
}
