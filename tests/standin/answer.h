/* How the exported functions begin and how they answer from the scenario. */
#ifndef GPUSNAP_TEST_ANSWER_H
#define GPUSNAP_TEST_ANSWER_H

#include "scenario.h"

struct context {
    struct scenario *machine;
    struct card *card;
};

nvmlDevice_t handle_of(const struct card *card);

/* Fills `context`; a code other than 0 is what the function must return. */
nvmlReturn_t enter_system(struct context *context, const char *function);
nvmlReturn_t enter_card(struct context *context, nvmlDevice_t device, const char *function, int detail);

#define TRY(expression) \
    do { \
        nvmlReturn_t code_ = (expression); \
        if (code_ != NVML_SUCCESS) return code_; \
    } while (0)
#define ENTER_SYSTEM \
    struct context at; \
    TRY(enter_system(&at, __func__))
#define ENTER_CARD_FOR(detail) \
    struct context at; \
    TRY(enter_card(&at, device, __func__, (int)(detail)))
#define ENTER_CARD ENTER_CARD_FOR(NO_DETAIL)

/* A key that is not there is NVML_ERROR_NOT_SUPPORTED. `keyf` formats the key. */
nvmlReturn_t answer_uint(const struct card *card, const char *key, unsigned *value);
nvmlReturn_t answer_u64(const struct card *card, const char *key, u64 *value);
nvmlReturn_t answer_text(const struct card *card, const char *key, char *buffer, unsigned size);
const char *keyf(char buffer[64], const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
