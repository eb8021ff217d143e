/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The broker does not tell which plugins it has loaded, the dynamic linker does: each object that defines one of
 * the functions that a plugin must have, and is not this one.
 */

#include <dlfcn.h>
#include <link.h>

#include "base/cleanup.h"
#include "plugin/internal.h"

static const char *const entry_points[] = {
        "mosquitto_plugin_version",      /* interface 5 */
        "mosquitto_auth_plugin_version", /* 2 to 4 */
};

#define N_ENTRY_POINTS (sizeof(entry_points) / sizeof(entry_points[0]))

/* Only gathers the names: the linker's lists are locked meanwhile. */
static int gather(struct dl_phdr_info *object, size_t size, void *userdata) {
        struct buf *names = userdata;

        (void)size;
        /* The program itself has no name. */
        if (object->dlpi_name && object->dlpi_name[0] != '\0')
                buf_append(names, object->dlpi_name, strlen(object->dlpi_name) + 1);
        return 0;
}

static bool is_in_us(const void *address) {
        Dl_info there, here;

        return dladdr(address, &there) && dladdr(&entry_points, &here) && there.dli_fbase == here.dli_fbase;
}

static bool is_neighbour(const char *name) {
        bool found = false;
        void *object;

        object = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (!object)
                return false; /* the kernel's own */

        for (size_t i = 0; i < N_ENTRY_POINTS; i++) {
                const void *entry = dlsym(object, entry_points[i]);

                if (entry && !is_in_us(entry))
                        found = true;
        }
        dlclose(object);
        return found;
}

bool neighbours_exist(void) {
        CLEANUP(buf_deinit) struct buf names = { 0 };
        const char *name, *end;

        dl_iterate_phdr(gather, &names);
        if (buf_failed(&names))
                return true;

        name = (const char *)names.data;
        end = name + names.length;
        for (; name < end; name += strlen(name) + 1)
                if (is_neighbour(name))
                        return true;
        return false;
}
