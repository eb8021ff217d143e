/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/work_clock.h"

void work_clock_resume(struct work_clock *clock, struct now now) {
        if (clock->read_ns < now.mono_ns)
                clock->read_ns = now.mono_ns;
        clock->used_ns = 0;
}

void work_clock_charge(struct work_clock *clock, int64_t *work_ns) {
        int64_t begin_ns = clock->read_ns;

        clock->read_ns = clock->callbacks->clock_ns(clock->callbacks->userdata);
        clock->used_ns += clock->read_ns - begin_ns;
        *work_ns += clock->read_ns - begin_ns;
}

void work_clock_end(struct work_clock *clock) {
        clock->used_ns = clock->quantum_ns;
}

bool work_clock_is_over(const struct work_clock *clock) {
        return clock->used_ns >= clock->quantum_ns;
}

void work_clock_set_quantum(struct work_clock *clock, int64_t commit_ns) {
        clock->quantum_ns = commit_ns < QUANTUM_NS ? QUANTUM_NS : commit_ns;
        if (clock->quantum_ns > QUANTUM_NS_MAX)
                clock->quantum_ns = QUANTUM_NS_MAX;
}
