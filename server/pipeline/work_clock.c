/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/work_clock.h"

void work_clock_resume(struct work_clock *clock, struct now now) {
        if (clock->read_ns < now.mono_ns)
                clock->read_ns = now.mono_ns;
        clock->quantum.used_ns = 0;
}

void work_clock_charge(struct work_clock *clock, int64_t *work_ns) {
        int64_t begin_ns = clock->read_ns;

        clock->read_ns = clock->callbacks->clock_ns(clock->callbacks->userdata);
        clock->quantum.used_ns += clock->read_ns - begin_ns;
        *work_ns += clock->read_ns - begin_ns;
}

void quantum_end(struct quantum *quantum) {
        quantum->used_ns = quantum->limit_ns;
}

bool quantum_is_over(const struct quantum *quantum) {
        return quantum->used_ns >= quantum->limit_ns;
}

void quantum_set_limit(struct quantum *quantum, int64_t commit_ns) {
        quantum->limit_ns = commit_ns < QUANTUM_NS ? QUANTUM_NS : commit_ns;
        if (quantum->limit_ns > QUANTUM_NS_MAX)
                quantum->limit_ns = QUANTUM_NS_MAX;
}
