/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For LD_PRELOAD: libmosquitto runs out of memory when it copies Correlation Data that is equal to
 * STARVED.
 */

#include <dlfcn.h>
#include <mosquitto.h>
#include <stdlib.h>
#include <string.h>

#define STARVED "no memory for this"

const mosquitto_property *mosquitto_property_read_binary(const mosquitto_property *list, int identifier,
                                                         void **ret_data, uint16_t *ret_length,
                                                         bool skip_first) {
        static const mosquitto_property *(*read)(const mosquitto_property *, int, void **, uint16_t *, bool);
        const mosquitto_property *found;

        if (!read)
                read = (const mosquitto_property *(*)(const mosquitto_property *, int, void **, uint16_t *,
                                                      bool))dlsym(RTLD_NEXT,
                                                                  "mosquitto_property_read_binary");

        found = read(list, identifier, ret_data, ret_length, skip_first);
        if (!found || *ret_length != strlen(STARVED) || memcmp(*ret_data, STARVED, *ret_length) != 0)
                return found;

        free(*ret_data);
        *ret_data = NULL;
        return NULL;
}
