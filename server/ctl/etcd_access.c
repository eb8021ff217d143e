/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/etcd_access.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/random.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "config/config.h"
#include "config/etcd_storage.h"
#include "election/election.h"

/* Time after a failed call of etcd until the next one. */
#define RETRY_INTERVAL_MS 100

enum exit_code etcd_access_open(struct etcd_access *etcd, const struct command_options *options,
                                bool read_only) {
        int r = config_etcd_storage(&options->store_config->etcd, &etcd->password, &etcd->config);

        if (r == 0) {
                int64_t share_ms = command_options_share_ms(options, etcd->config.etcd.n_endpoints);

                etcd->end_ms = system_clock_mono_ms() + options->timeout_ms;
                if (etcd->config.etcd.timeout_ms > share_ms)
                        etcd->config.etcd.timeout_ms = share_ms;
                etcd->config.read_only = read_only;
                snprintf(etcd->config.holder.name, sizeof(etcd->config.holder.name), "statestorectl");
                random_fill(&etcd->config.holder.member, sizeof(etcd->config.holder.member));
                r = storage_etcd_open(&etcd->storage, &etcd->config);
        }
        if (r == -ENOMEM)
                return complain_of_memory();
        return r < 0 ? EXIT_USAGE : EXIT_DONE;
}

void etcd_access_close(struct etcd_access *etcd) {
        storage_close(etcd->storage);
        buf_deinit(&etcd->password);
}

enum exit_code etcd_access_observe(struct etcd_access *etcd) {
        int r;

        while ((r = storage_etcd_observe(etcd->storage, &etcd->reading)) == -EIO &&
               system_clock_mono_ms() < etcd->end_ms)
                system_clock_sleep_ms(RETRY_INTERVAL_MS);
        if (r == -ENOMEM)
                return complain_of_memory();
        if (r == -EBADMSG)
                complain("%s", storage_etcd_reason(etcd->storage));
        else if (r < 0)
                complain("etcd cannot be read"); /* its client has logged why */
        return r == 0 ? EXIT_DONE : r == -EBADMSG ? EXIT_STORE_ERROR : EXIT_NO_REPLY;
}

bool etcd_access_has_leader(const struct etcd_access *etcd) {
        const struct election_header *holder = &etcd->reading.header.holder;

        return holder->mod_revision > 0 && !holder->has_given_up;
}

static enum exit_code win(struct etcd_access *etcd) {
        int r = storage_etcd_win(etcd->storage, &etcd->reading, etcd->reading.header.state.shift_ms);

        return r == 0 ? EXIT_DONE : r == STORAGE_ETCD_LOST ? EXIT_NOT_MET : EXIT_STORE_ERROR;
}

/* Whether a process has written the header since the first reading, and leads. */
static bool is_led(const struct etcd_access *etcd, uint64_t first_revision) {
        return etcd_access_has_leader(etcd) && etcd->reading.header.holder.mod_revision != first_revision;
}

enum exit_code etcd_access_lead(struct etcd_access *etcd) {
        struct election_config config = { .member = etcd->config.holder.member,
                                          .lease_ns = etcd->config.holder.lease_ns };
        enum exit_code code = etcd_access_observe(etcd);
        uint64_t first_revision = etcd->reading.header.holder.mod_revision;
        struct election election;

        election_init(&election, &config);
        while (code == EXIT_DONE && !is_led(etcd, first_revision)) {
                election_observe(&election, &etcd->reading.election);
                if (election_next(&election, system_clock_boot_ns(), true) >= ELECTION_WINS_NEW) {
                        code = win(etcd);
                        if (code != EXIT_NOT_MET)
                                return code;
                }
                system_clock_sleep_ms(election_read_interval_ns(config.lease_ns) / NS_PER_MS);
                code = etcd_access_observe(etcd);
        }
        if (code != EXIT_DONE)
                return code;
        complain("\"%s\" leads: use the address of the cluster, or stop all its members",
                 LOG_STRING(etcd->reading.header.holder.name));
        return EXIT_NOT_MET;
}
