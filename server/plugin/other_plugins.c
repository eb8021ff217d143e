/* SPDX-License-Identifier: Apache-2.0 */

/* The broker does not list its plugins, so search the objects that the dynamic linker has loaded. */

#include <dlfcn.h>
#include <link.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "plugin/internal.h"

/* A plugin defines one of these functions. */
static const char *const entry_points[] = {
        "mosquitto_plugin_version",      /* interface 5 */
        "mosquitto_auth_plugin_version", /* interfaces 2 to 4 */
};

#define N_ENTRY_POINTS ARRAY_LENGTH(entry_points)

/* For dl_iterate_phdr(). Collect the name only: the dynamic linker's lists are locked during the call. */
static int collect_name(struct dl_phdr_info *object, size_t size, void *userdata) {
        struct buf *names = userdata;

        (void)size;
        if (object->dlpi_name && object->dlpi_name[0] != '\0') /* the program has an empty name */
                buf_append(names, object->dlpi_name, strlen(object->dlpi_name) + 1);
        return 0;
}

static bool is_in_this_plugin(const void *address) {
        Dl_info other, own;

        return dladdr(address, &other) && dladdr(&entry_points, &own) && other.dli_fbase == own.dli_fbase;
}

static bool is_other_plugin(const char *object_name) {
        bool found = false;
        void *object;

        object = dlopen(object_name, RTLD_LAZY | RTLD_NOLOAD);
        if (!object)
                return false; /* the kernel's vDSO */

        for (size_t i = 0; i < N_ENTRY_POINTS; i++) {
                const void *entry_point = dlsym(object, entry_points[i]);

                if (entry_point && !is_in_this_plugin(entry_point))
                        found = true;
        }
        dlclose(object);
        return found;
}

bool other_plugin_is_loaded(void) {
        CLEANUP(buf_deinit) struct buf names = { 0 };
        const char *name, *end;

        dl_iterate_phdr(collect_name, &names);
        if (buf_failed(&names))
                return true;

        name = (const char *)names.data;
        end = name + names.length;
        for (; name < end; name += strlen(name) + 1)
                if (is_other_plugin(name))
                        return true;
        return false;
}
