/* SPDX-License-Identifier: Apache-2.0 */

#include "names.h"

const char *verb_name(enum verb verb) {
        static const char *const names[N_VERBS + 1] = {
                [VERB_SET] = "set",
                [VERB_GET] = "get",
                [VERB_DEL] = "del",
                [VERB_VDEL] = "vdel",
                [VERB_KEYNOTIFY] = "keynotify",
                [VERB_SCAN] = "scan",
                [N_VERBS] = "unknown",
        };

        return names[verb];
}

const char *fault_name(enum envelope_fault fault) {
        static const char *const names[N_ENVELOPE_FAULTS] = {
                [ENVELOPE_OK] = "none",
                [ENVELOPE_QOS] = "wrong qos",
                [ENVELOPE_CORRELATION] = "no correlation data",
                [ENVELOPE_VERSION] = "unsupported version",
        };

        return names[fault];
}
