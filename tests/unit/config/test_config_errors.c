/* SPDX-License-Identifier: Apache-2.0 */

/* Messages for wrong options. */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"
#include "unit/support/command_line.h"
#include "unit/support/table.h"

#define TWO_HUNDRED_AND_FIFTY_SEVEN                                                                         \
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456" \
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456" \
        "012345678901234567890123456789012345678901234567890123456789012"

_Static_assert(sizeof(TWO_HUNDRED_AND_FIFTY_SEVEN) == 258, "one more than a node id may have");

#define PATTERN_EXPECTED                                                                                    \
        "a UTF-8 pattern with ']' after each '[', and with ** only between slashes, was expected"

static const struct {
        const char *name;
        const char *arguments[4];
        const char *line;
} wrong[] = {
        { "a word", { "host" }, "statestored: host: not an option; see --help\n" },
        { "one dash", { "-host", "a" }, "statestored: -host: not an option; see --help\n" },
        { "an empty argument", { "" }, "statestored: : not an option; see --help\n" },
        { "two dashes", { "--" }, "statestored: --: no such option; see --help\n" },
        { "an unknown option", { "--hosts=a" }, "statestored: --hosts=a: no such option; see --help\n" },
        { "an upper-case letter", { "--Host=a" }, "statestored: --Host=a: no such option; see --help\n" },
        { "control characters", { "--a\nb" }, "statestored: --a\\x0Ab: no such option; see --help\n" },
        { "a missing value",
          { "--port" },
          "statestored: --port: a port from 0 to 65535 was expected; see --help\n" },
        { "one argument",
          { "--port=x" },
          "statestored: --port=x: a port from 0 to 65535 was expected, not \"x\"; see --help\n" },
        { "two arguments",
          { "--port", "70000" },
          "statestored: --port: a port from 0 to 65535 was expected, not \"70000\"; see --help\n" },
        { "port 0",
          { "--port", "0" },
          "statestored: --port: 0 means any free port, and is only valid with --dev; see --help\n" },
        { "an empty port",
          { "--port=" },
          "statestored: --port=: a port from 0 to 65535 was expected, not \"\"; see --help\n" },
        { "an empty client id",
          { "--client-id", "" },
          "statestored: --client-id: 1 to 65535 bytes of UTF-8 without control characters was expected, not "
          "\"\"; see --help\n" },
        { "a client id that is not UTF-8",
          { "--client-id", "\xFF" },
          "statestored: --client-id: 1 to 65535 bytes of UTF-8 without control characters was expected, not "
          "\"\\xFF\"; see --help\n" },
        { "a node id with a colon",
          { "--node-id", "a:b" },
          "statestored: --node-id: 1 to 256 bytes of UTF-8 without ':' was expected, not \"a:b\"; see "
          "--help\n" },
        { "an empty node id",
          { "--node-id", "" },
          "statestored: --node-id: 1 to 256 bytes of UTF-8 without ':' was expected, not \"\"; see "
          "--help\n" },
        { "an unknown dialect",
          { "--dialect=SDK" },
          "statestored: --dialect=SDK: sdk or document was expected, not \"SDK\"; see --help\n" },
        { "a wrong number of keys",
          { "--max-keys", "-1" },
          "statestored: --max-keys: a number was expected, not \"-1\"; see --help\n" },
        { "a number of keys beyond 64 bits",
          { "--max-keys", "18446744073709551616" },
          "statestored: --max-keys: a number was expected, not \"18446744073709551616\"; see --help\n" },
        { "a wrong number of registrations",
          { "--max-registrations", "1k" },
          "statestored: --max-registrations: a number was expected, not \"1k\"; see --help\n" },
        { "a wrong size",
          { "--max-bytes", "1GB" },
          "statestored: --max-bytes: a size, such as 1048576, 64MiB or 1GiB was expected, not \"1GB\"; see "
          "--help\n" },
        { "a registration timeout that is too short",
          { "--registration-timeout", "999ms" },
          "statestored: --registration-timeout: a duration from 1s to 365d was expected, not \"999ms\"; see "
          "--help\n" },
        { "a registration timeout that is too long",
          { "--registration-timeout", "366d" },
          "statestored: --registration-timeout: a duration from 1s to 365d was expected, not \"366d\"; see "
          "--help\n" },
        { "a wrong size of remembered replies",
          { "--max-remembered-bytes", "" },
          "statestored: --max-remembered-bytes: a size, such as 1048576, 64MiB or 1GiB was expected, not "
          "\"\"; "
          "see --help\n" },
        { "an empty ready file",
          { "--ready-file", "" },
          "statestored: --ready-file: a file name was expected, not \"\"; see --help\n" },
        { "an HTTP address without a port",
          { "--http-listen", "127.0.0.1" },
          "statestored: --http-listen: [ADDRESS:]PORT, such as 127.0.0.1:9464, was expected, not "
          "\"127.0.0.1\"; see --help\n" },
        { "an HTTP certificate without a key",
          { "--http-listen=1", "--http-certificate=c" },
          "statestored: --http-certificate: --http-certificate and --http-key must be given together; see "
          "--help\n" },
        { "TLS without HTTP",
          { "--http-certificate=c", "--http-key=k" },
          "statestored: --http-certificate: only with --http-listen; see --help\n" },
        { "users of the console in plain text beyond this machine",
          { "--http-listen=0.0.0.0:1", "--console-users=/dev/null" },
          "statestored: --console-users: needs --http-listen with a loopback address, or with "
          "--http-certificate and --http-key: tokens are not sent over a network in plain text; see "
          "--help\n" },
        { "an HTTP port without an address",
          { "--http-listen", ":0" },
          "statestored: --http-listen: [ADDRESS:]PORT, such as 127.0.0.1:9464, was expected, not \":0\"; "
          "see "
          "--help\n" },
        { "an unknown log level",
          { "--log-level", "trace" },
          "statestored: --log-level: error, warning, info or debug was expected, not \"trace\"; see "
          "--help\n" },
        { "log-keys",
          { "--log-keys", "yes" },
          "statestored: --log-keys: on or off was expected, not \"yes\"; see --help\n" },
        { "an unknown log format",
          { "--log-format", "xml" },
          "statestored: --log-format: text or json was expected, not \"xml\"; see "
          "--help\n" },
        { "TLS",
          { "--tls", "yes" },
          "statestored: --tls: on or off was expected, not \"yes\"; see --help\n" },
        { "--dev that is neither on nor off",
          { "--dev=1883" },
          "statestored: --dev=1883: on or off was expected, not \"1883\"; see --help\n" },
        { "a host with --dev",
          { "--dev", "--host=a" },
          "statestored: --host: not with --dev, which starts a private broker without this option; see "
          "--help\n" },
        { "a --dev-listen that is not an address",
          { "--dev", "--dev-listen=localhost" },
          "statestored: --dev-listen=localhost: an IPv4 address, or 0.0.0.0 for all addresses of this "
          "machine was "
          "expected, not \"localhost\"; see --help\n" },
        { "--dev-listen without --dev",
          { "--dev-listen=0.0.0.0" },
          "statestored: --dev-listen: only with --dev; see --help\n" },
        { "two faults, one per line",
          { "--port=1", "--tls=", "--port=x" },
          "statestored: --tls=: on or off was expected, not \"\"; see --help\n"
          "statestored: --port=x: a port from 0 to 65535 was expected, not \"x\"; see --help\n" },
        { "an empty host",
          { "--host=" },
          "statestored: --host=: a list of names, addresses or socket paths, each with or without :PORT, "
          "was expected, not \"\"; see --help\n" },
        { "a host with a wrong port",
          { "--host=a:0" },
          "statestored: --host=a:0: a list of names, addresses or socket paths, each with or without :PORT, "
          "was expected, not \"a:0\"; see --help\n" },
        { "a list of empty hosts",
          { "--host=a,,b" },
          "statestored: --host=a,,b: a list of names, addresses or socket paths, each with or without "
          ":PORT, was expected, not \"a,,b\"; see --help\n" },
        { "too short a keepalive",
          { "--keepalive=4s" },
          "statestored: --keepalive=4s: a duration from 5s to 65535s was expected, not "
          "\"4s\"; see "
          "--help\n" },
        { "too long a keepalive",
          { "--keepalive=65536s" },
          "statestored: --keepalive=65536s: a duration from 5s to 65535s was expected, not "
          "\"65536s\"; "
          "see --help\n" },
        { "a keepalive that is not a duration",
          { "--keepalive=x" },
          "statestored: --keepalive=x: a duration from 5s to 65535s was expected, not "
          "\"x\"; see "
          "--help\n" },
        { "an empty user",
          { "--user=" },
          "statestored: --user=: a name was expected, not \"\"; see --help\n" },
        { "an empty password file",
          { "--password-file=" },
          "statestored: --password-file=: a file name was expected, not \"\"; see --help\n" },
        { "an empty certificate",
          { "--tls-certificate=" },
          "statestored: --tls-certificate=: a file name was expected, not \"\"; see --help\n" },
        { "an empty key file",
          { "--tls-key=" },
          "statestored: --tls-key=: a file name was expected, not \"\"; see --help\n" },
        { "an empty CA file",
          { "--tls-ca-file=" },
          "statestored: --tls-ca-file=: a file name was expected, not \"\"; see --help\n" },
        { "a presence topic without a client",
          { "--presence-topic=gone/+" },
          "statestored: --presence-topic=gone/+: a topic in which one level reads {client} was expected, "
          "not \"gone/+\"; see --help\n" },
        { "an empty presence topic",
          { "--presence-topic=" },
          "statestored: --presence-topic=: a topic in which one level reads {client} was expected, not "
          "\"\"; see --help\n" },
        { "a wrong switch for --require-plugin",
          { "--require-plugin=yes" },
          "statestored: --require-plugin=yes: on or off was expected, not \"yes\"; see --help\n" },
        { "an empty seed",
          { "--seed=" },
          "statestored: --seed=: a file name was expected, not \"\"; see --help\n" },
        { "an empty directory",
          { "--data-dir=" },
          "statestored: --data-dir=: a directory was expected, not \"\"; see --help\n" },
        { "an unknown persist mode",
          { "--persist=some" },
          "statestored: --persist=some: all, none or custom was expected, not \"some\"; see --help\n" },
        { "an empty policy",
          { "--policy=" },
          "statestored: --policy=: a file name was expected, not \"\"; see --help\n" },
        { "a wrong switch for unverified clients",
          { "--allow-unverified=yes" },
          "statestored: --allow-unverified=yes: on or off was expected, not \"yes\"; see --help\n" },
        { "--explain with three words",
          { "--explain", "c", "u" },
          "statestored: --explain: CLIENT USER VERB KEY was expected; see --help\n" },
        { "persist-key",
          { "--persist-key=base64:x" },
          "statestored: --persist-key=base64:x: a key, or base64: and its base64, was expected, not "
          "\"base64:x\"; see --help\n" },
        { "an empty pattern",
          { "--persist-pattern=" },
          "statestored: --persist-pattern=: " PATTERN_EXPECTED ", not \"\"; see --help\n" },
        { "an invalid pattern",
          { "--persist-pattern=a**" },
          "statestored: --persist-pattern=a**: " PATTERN_EXPECTED ", not \"a**\"; see --help\n" },
        { "a pattern that is not UTF-8",
          { "--persist-pattern=\xFF*" },
          "statestored: --persist-pattern=\\xFF*: " PATTERN_EXPECTED ", not \"\\xFF*\"; see --help\n" },
        { "a property without a value",
          { "--persist-property=keep" },
          "statestored: --persist-property=keep: NAME=VALUE or off was expected, not \"keep\"; see "
          "--help\n" },
        { "a property without a name",
          { "--persist-property==1" },
          "statestored: --persist-property==1: NAME=VALUE or off was expected, not \"=1\"; see --help\n" },
        { "an empty property",
          { "--persist-property=" },
          "statestored: --persist-property=: NAME=VALUE or off was expected, not \"\"; see --help\n" },
        { "a node id that is too long",
          { "--node-id", TWO_HUNDRED_AND_FIFTY_SEVEN },
          "statestored: --node-id: 1 to 256 bytes of UTF-8 without ':' was expected, not "
          "\"01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
          "56012345678901234567890123456...\"; see --help\n" },
        { "a certificate without its key",
          { "--tls=on", "--tls-certificate=c" },
          "statestored: --tls-certificate: --tls-certificate and --tls-key must be given together; "
          "see --help\n" },
        { "a key without its certificate",
          { "--tls=on", "--tls-key=k" },
          "statestored: --tls-key: --tls-certificate and --tls-key must be given together; see "
          "--help\n" },
        { "a certificate without TLS",
          { "--tls-certificate=c", "--tls-key=k" },
          "statestored: --tls-certificate: not used without --tls on or --tls-ca-file; see --help\n" },
        { "a wrong switch for --dev",
          { "--dev=" },
          "statestored: --dev=: on or off was expected, not \"\"; see --help\n" },
        { "TLS with --dev",
          { "--tls=on", "--dev" },
          "statestored: --tls: not with --dev, which starts a private broker without this option; see "
          "--help\n" },
        { "a client id with a control character",
          { "--client-id=a\x7F" },
          "statestored: --client-id=a\\x7F: 1 to 65535 bytes of UTF-8 without control characters was "
          "expected, not \"a\\x7F\"; see --help\n" },
        { "a wrong switch for --control",
          { "--control=yes" },
          "statestored: --control=yes: on or off was expected, not \"yes\"; see --help\n" },
        { "--control with a data directory",
          { "--control", "--data-dir=d" },
          "statestored: --control: not with --data-dir or --etcd: any client of the broker could delete the "
          "stored data; see --help\n" },
        { "a wrong switch for --exit-with-parent",
          { "--exit-with-parent=yes" },
          "statestored: --exit-with-parent=yes: on or off was expected, not \"yes\"; see --help\n" },
        { "etcd without a scheme",
          { "--etcd=a:2379" },
          "statestored: --etcd=a:2379: a list of http://HOST:PORT or https://HOST:PORT was expected, not "
          "\"a:2379\"; see --help\n" },
        { "etcd without a port",
          { "--etcd=http://a" },
          "statestored: --etcd=http://a: a list of http://HOST:PORT or https://HOST:PORT was expected, not "
          "\"http://a\"; see --help\n" },
        { "etcd with a path",
          { "--etcd=http://a:2379/v3" },
          "statestored: --etcd=http://a:2379/v3: a list of http://HOST:PORT or https://HOST:PORT was "
          "expected, not \"http://a:2379/v3\"; see --help\n" },
        { "an empty part of etcd",
          { "--etcd=http://a:1," },
          "statestored: --etcd=http://a:1,: a list of http://HOST:PORT or https://HOST:PORT was expected, "
          "not \"http://a:1,\"; see --help\n" },
        { "another scheme of etcd",
          { "--etcd=ftp://a:1" },
          "statestored: --etcd=ftp://a:1: a list of http://HOST:PORT or https://HOST:PORT was expected, not "
          "\"ftp://a:1\"; see --help\n" },
        { "a password in the address of etcd",
          { "--etcd=http://u:p@a:1" },
          "statestored: --etcd=http://u:p@a:1: a list of http://HOST:PORT or https://HOST:PORT was "
          "expected, not \"http://u:p@a:1\"; see --help\n" },
        { "etcd with a seed",
          { "--etcd=http://a:1", "--seed=s" },
          "statestored: --seed: not with --etcd: each member would set the keys again; use statestorectl "
          "import; see --help\n" },
        { "etcd with a data directory",
          { "--etcd=http://a:1", "--data-dir=d" },
          "statestored: --etcd: not with --data-dir: the keys are stored in one of both; see --help\n" },
        { "etcd with a private broker",
          { "--etcd=http://a:1", "--dev" },
          "statestored: --etcd: not with --dev: its broker is lost with the store; see --help\n" },
        { "a prefix without a slash at its end",
          { "--etcd-prefix=/a" },
          "statestored: --etcd-prefix=/a: a text that begins and ends with '/' was expected, not \"/a\"; "
          "see --help\n" },
        { "a member of a cluster without etcd",
          { "--member=a", "--lease=3s" }, /* that of --lease is the default */
          "statestored: --member: only with --etcd; see --help\n" },
        { "a user of etcd without a password",
          { "--etcd=http://a:1", "--etcd-user=u" },
          "statestored: --etcd-user: --etcd-user and --etcd-password-file must be given together; see "
          "--help\n" },
        { "a password without a user of etcd",
          { "--etcd=http://a:1", "--etcd-password-file=p" },
          "statestored: --etcd-password-file: --etcd-user and --etcd-password-file must be given together; "
          "see --help\n" },
        { "an empty CA file of etcd",
          { "--etcd-ca-file=" },
          "statestored: --etcd-ca-file=: a file name was expected, not \"\"; see --help\n" },
        { "a certificate for etcd without its key",
          { "--etcd=http://a:1", "--etcd-certificate=c" },
          "statestored: --etcd-certificate: --etcd-certificate and --etcd-key must be given together; see "
          "--help\n" },
        { "a key for etcd without its certificate",
          { "--etcd=http://a:1", "--etcd-key=k" },
          "statestored: --etcd-key: --etcd-certificate and --etcd-key must be given together; see "
          "--help\n" },
        { "fewer operations than by default",
          { "--etcd-max-txn-ops=127" },
          "statestored: --etcd-max-txn-ops=127: a number from 128 was expected, not \"127\"; see --help\n" },
        { "smaller requests than by default",
          { "--etcd-max-request-bytes=1MiB" },
          "statestored: --etcd-max-request-bytes=1MiB: a size from 1536KiB to 512MiB was expected, not "
          "\"1MiB\"; see --help\n" },
        { "an empty member",
          { "--member=" },
          "statestored: --member=: 1 to 63 bytes of UTF-8 was expected, not \"\"; see --help\n" },
        { "too short a lease",
          { "--lease=999ms" },
          "statestored: --lease=999ms: a duration from 1s to 60s was expected, not \"999ms\"; see "
          "--help\n" },
        { "a password without a user",
          { "--password-file=p" },
          "statestored: --password-file: not used without --user; see --help\n" },
};

Test(config, reports_wrong_options_with_what_was_expected) {
        for (size_t i = 0; i < N_ROWS(wrong); i++) {
                char *printed = printed_by(STDERR_FILENO, wrong[i].arguments, CONFIG_INVALID);

                cr_expect_str_eq(printed, wrong[i].line, ROW(wrong, i));
                free(printed);
        }
}

/* Whether a row of the table above has this flag. */
static bool is_tested(const char *flag) {
        size_t length = strlen(flag);

        for (size_t i = 0; i < N_ROWS(wrong); i++)
                for (size_t k = 0; k < N_ROWS(wrong[i].arguments) && wrong[i].arguments[k]; k++)
                        if (strncmp(wrong[i].arguments[k], flag, length) == 0)
                                return true;
        return false;
}

Test(config, every_option_has_a_test_with_a_wrong_value) {
        for (size_t i = 0; i < n_settings; i++)
                cr_expect(is_tested(config_options[i].flag), "%s", config_options[i].flag);
}
