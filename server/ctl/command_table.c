/* SPDX-License-Identifier: Apache-2.0 */

/* The table of commands. */

#include "base/array.h"
#include "ctl/command_run.h"

static const char get_help[] =
        "Prints the value without a newline, so that scripts get it byte for byte. On a terminal the\n"
        "version follows on a line of its own, and control and invisible characters of the value are\n"
        "escaped, except newlines and tabs.\n"
        "\n"
        "  statestorectl get greeting\n"
        "  level=$(statestorectl get level) || level=unknown\n"
        "  statestorectl get firmware > firmware.bin\n"
        "  statestorectl get lock --json            value, version, expires_in_ms and fencing token\n"
        "\n"
        "With several keys, prints a line for each: key, tab, value. Control and invisible characters\n"
        "are escaped; --json and --hex print both exactly. Exit status 1 if a key was not found.\n"
        "\n"
        "  statestorectl get greeting level\n";

static const char set_help[] =
        "Prints OK and the version of the value. If the key is a lock, the version is a fencing token.\n"
        "A value from stdin is stored unchanged, with its newlines.\n"
        "\n"
        "  statestorectl set greeting 'hello world'\n"
        "  statestorectl set client 42 --px 5m     expires after five minutes\n"
        "  statestorectl set firmware - < firmware.bin\n"
        "  date +%F | statestorectl set today -\n"
        "\n"
        "  # take a lock for ten seconds; the second command fails if a later holder of the lock\n"
        "  # has written the key valve with its own token\n"
        "  token=$(statestorectl set lock me --nex --px 10s) || exit\n"
        "  statestorectl set valve open --fence \"${token#OK }\"\n";

static const char del_help[] =
        "Prints the word deleted and the version of the deleted value. With several keys, prints such a\n"
        "line for each, followed by a tab and the key. Exit status 1 if a key was not found.\n"
        "\n"
        "  statestorectl del greeting level\n"
        "  statestorectl del state --fence 001696374425000:00000:StateStore\n"
        "  statestorectl scan 'tmp-*' --hex | xargs -r statestorectl del --hex        all that match\n";

static const char vdel_help[] =
        "Prints the word deleted and the version of the deleted value.\n"
        "\n"
        "  statestorectl vdel lock me               release a lock, unless another client has it\n";

static const char scan_help[] =
        "Prints one key per line. A key with control or invisible characters is printed escaped; --json\n"
        "and --hex print every key exactly. statestored does not list keys that are not UTF-8.\n"
        "\n"
        "The pattern must match the whole key: * matches any number of characters, ? one character,\n"
        "[abc] [a-z] [!a] one character of a set, [*] a star, [[] a bracket, a/**/b any number of\n"
        "levels between a and b. A key that is set or deleted during the scan may be missing.\n"
        "\n"
        "--long reads each key. It prints, separated by tabs: key, size of the value in bytes, time until\n"
        "the key expires, fencing token, and the time of the version in UTC. - means none, and ? that the\n"
        "store does not tell. On a terminal the first line names the columns. With --json the lines have\n"
        "size, expires_in_ms, token and version.\n"
        "\n"
        "  statestorectl scan --long | sort | column -t\n"
        "  statestorectl scan\n"
        "  statestorectl scan 'sensor/*/temperature'\n"
        "  statestorectl scan 'tmp-*' | wc -l       count them\n";

static const char watch_help[] =
        "Prints one line per change, with fields separated by tabs: SET, version, key, value; or\n"
        "DELETE, version, key. An expired key is reported as deleted. The keys need not exist. Keys\n"
        "and values with control or invisible characters are printed escaped; --json and --hex print\n"
        "them exactly.\n"
        "\n"
        "  statestorectl watch lock\n"
        "  statestorectl watch lock --count 1       wait for the next change\n"
        "  timeout 30 statestorectl watch lock --count 1            exit status 124 if there is none\n"
        "  statestorectl watch door --initial       the present value, then each change\n"
        "  statestorectl watch a b --json | jq .\n"
        "\n"
        "After a disconnect, watch connects and registers again. It also registers at intervals of twice\n"
        "--timeout, because a restarted store may have no registrations. Changes until it has registered\n"
        "again are missed; stderr says why. With --initial, watch then prints the present values that\n"
        "differ from those printed last. The plugin disconnects watch if it reads too slowly, for\n"
        "example because its output is not read. Two running watches need different client ids: each\n"
        "ends the connection of the other, and after a few times one of them exits with status 3.\n";

static const char lock_help[] =
        "Runs COMMAND while it holds the lock KEY. Waits until the lock is free, runs the command with\n"
        "the fencing token of the lock in the variable STATESTORE_FENCE, and deletes KEY when the command\n"
        "has ended. The value of KEY is the client id, as the clients of Azure IoT Operations write it,\n"
        "so that they and this command exclude each other; or --name, for example of an elected leader.\n"
        "\n"
        "  statestorectl lock nightly -- ./backup.sh\n"
        "  statestorectl lock nightly --wait 0s -- ./backup.sh      exit status 121 if it is locked\n"
        "  statestorectl lock valve -- sh -c 'statestorectl set state open --fence $STATESTORE_FENCE'\n"
        "  statestorectl lock controller --name \"$HOSTNAME\" -- ./controller\n"
        "\n"
        "The lease is renewed after a third of its time. If it cannot be renewed, the process group of the\n"
        "command gets SIGTERM after two thirds, and SIGKILL after nine tenths, counted from the moment\n"
        "the last successful renewal was sent. So its processes have ended before another client can\n"
        "have the lock. If another client has it nevertheless, they get SIGKILL at once. After SIGSTOP or\n"
        "a suspend of the machine that is longer than the lease, they get SIGKILL when statestorectl\n"
        "continues. Until then only the fencing token protects a key: write it with\n"
        "--fence \"$STATESTORE_FENCE\". The group has all processes that the command has started, except\n"
        "a daemon, which has left it.\n"
        "\n"
        "The command has the terminal, stdin and stdout. It gets SIGHUP, SIGINT, SIGQUIT, SIGTERM,\n"
        "SIGUSR1 and SIGUSR2 that statestorectl gets. If statestorectl is killed, the command is killed,\n"
        "but not the processes that it has started. Its environment does not have STATESTORE_CLIENT_ID:\n"
        "a client id can have one connection. The command begins after KEY; -- is optional.\n"
        "\n"
        "Exit status: that of the command, or 128 + N after signal N. 127: the command was not found.\n"
        "126: it cannot be executed. 125: the lock was lost; a command that still ran was ended. Before\n"
        "the command ran: 121 not acquired within --wait, 122 wrong usage, 123 no broker or no reply,\n"
        "124 an error of the store.\n";

static const char ping_help[] =
        "Prints the node id of the store and the round-trip time through the broker.\n"
        "\n"
        "  statestorectl ping --timeout 500ms || echo 'no store'\n";

static const char export_help[] =
        "Each line has key, value, version, deadline and fencing token; null means that the key has none.\n"
        "A deadline is wall clock time, in milliseconds since 1970. Keys and values that are not UTF-8\n"
        "are printed as key_base64 and value_base64; such keys only with --data-dir or --etcd, because\n"
        "statestored does not list them to clients, so export cannot count them either. It counts on\n"
        "stderr the keys that were deleted, or have expired, since the store listed them. With --data-dir\n"
        "the store must be stopped. With --etcd members may serve, and the keys are those of one moment;\n"
        "if etcd is compacted meanwhile, the command fails: repeat it.\n"
        "\n"
        "  statestorectl export > keys.jsonl\n"
        "  statestorectl export 'sensor/*' | jq -r .key\n"
        "  statestorectl export --data-dir /var/lib/statestored > everything.jsonl\n"
        "  statestorectl export --etcd --config /etc/statestored/statestored.conf > everything.jsonl\n";

static const char import_help[] =
        "Through the broker, each key gets a new version, the token of its line, and the time that\n"
        "remains until the deadline of its line. With --data-dir or --etcd, into a stopped store, each\n"
        "key gets the version, the token and the deadline of its line; with --etcd no member may lead.\n"
        "Keys whose deadline has passed are skipped. Warns of lines with neither deadline nor token, not\n"
        "even null: their keys never expire, and any client may write them. The import ends at the first\n"
        "key that the store refuses: stderr names its line, and the number of imported keys. Through the\n"
        "broker, some keys after it may be imported, too. A token more than a minute ahead of the clock is\n"
        "refused and, into a stopped store, also such a version. Clients that watch the keys are notified,\n"
        "those of a stopped store after its next start. FILE can also be a JSON list of objects whose\n"
        "members are keys and values; - is stdin.\n"
        "\n"
        "  statestorectl import keys.jsonl\n"
        "  statestorectl export --host old | statestorectl import - --host new\n";

static const char check_help[] =
        "Reads everything and changes nothing. PATH is a data directory, or the file of a backup. Exit\n"
        "status 4 if the data is damaged or cannot be read.\n"
        "\n"
        "  statestorectl check /var/lib/statestored\n"
        "  statestorectl check monday.db\n";

static const char backup_help[] =
        "The copy is consistent: it contains all writes acknowledged before it began. It is verified,\n"
        "and its content counted. FILE must not exist.\n"
        "\n"
        "  statestorectl backup /var/lib/statestored monday.db\n";

static const char restore_help[] =
        "Copies the backup into a data directory that is empty or does not exist, and verifies the copy.\n"
        "The owner of the directory owns the copy. Stop the store first, and move the files of its\n"
        "directory elsewhere. After the start, the plugin disconnects the clients that had registered\n"
        "with the former database, so that they register again and read their keys.\n"
        "\n"
        "  statestorectl restore monday.db /var/lib/statestored\n";

#define ETCD_HELP                                                                                           \
        "Uses the section [etcd] of the store's configuration: --config, or variables such as\n"            \
        "STATESTORE_ETCD_ENDPOINTS."

static const char cluster_help[] =
        "Asks etcd, not a store. Prints who leads, in which term, and how long ago it has committed, by\n"
        "the wall clocks; for each member of etcd its version, the size of its database, the part of it in\n"
        "use, and its state with alarms. If etcd has users, recent releases of it, such as 3.6.16, tell\n"
        "this only to root: then it is not printed. If less than half of the size is in use, etcdctl\n"
        "defrag frees the rest. A standby is not listed: its page /readyz says what it does. Exit status 1\n"
        "if no member leads, if the leader is silent for longer than its lease, or if a member of etcd is\n"
        "away, or is known to have an alarm.\n"
        "\n"
        "  sudo statestorectl cluster --config /etc/statestored/statestored.conf\n"
        "\n" ETCD_HELP "\n";

static const char step_down_help[] =
        "On the machine of the leader: it ends the service of its clients, and a standby leads. Waits "
        "until\n"
        "another member leads, and prints which one. Exit status 1 if this member does not lead, or if no\n"
        "other one leads within --timeout.\n"
        "\n"
        "  sudo statestorectl step-down --config /etc/statestored/statestored.conf\n"
        "\n" ETCD_HELP " Finds the process by the lock of the file \"member\" in the\n"
        "directory RUNTIME_DIRECTORY, by default /run/statestored.\n";

static const char console_token_help[] =
        "Prints a line for the file of --console-users on stdout, and the token on stderr. The token is "
        "not\n"
        "stored anywhere: the line has a hash of it. Requests of the console are those of the MQTT user\n"
        "NAME. An operator also sees what other clients do.\n"
        "\n"
        "  statestorectl console-token alice >> console-users.conf\n"
        "  statestorectl console-token bob --operator >> console-users.conf\n";

#define CONSOLE_HELP "Asks the console of the store (--http-listen), not the broker. "
#define OPERATOR_HELP                                                                                       \
        "--token-file has the token of an\n"                                                                \
        "operator (console-token --operator); statestored --dev needs none.\n"

static const char stat_help[] = CONSOLE_HELP
        "Needs no token. Prints whether the\n"
        "store is ready, or why not; what is stored, and the limits; requests a second and latencies in\n"
        "the last 5 s; warnings, each with its remedy.\n"
        "\n"
        "  statestorectl stat\n"
        "  statestorectl stat --json | jq .warnings\n";

static const char clients_help[] = CONSOLE_HELP OPERATOR_HELP
        "Prints the clients that have sent requests, with their number and bytes, how many were refused,\n"
        "and the number of watched keys. A client id is verified if the broker told it to the store, else\n"
        "the client claims it.\n"
        "\n"
        "  statestorectl clients --token-file token.txt\n"
        "  statestorectl clients | sort -rnk 5,5 | head        those with the most bytes of requests\n";

static const char watchers_help[] =
        CONSOLE_HELP OPERATOR_HELP "Prints who watches the key, or what the client watches, or everything.\n"
                                   "\n"
                                   "  statestorectl watchers door --token-file token.txt\n"
                                   "  statestorectl watchers --client gateway-1 --token-file token.txt\n";

static const char monitor_help[] = CONSOLE_HELP OPERATOR_HELP
        "Prints a line for each key that is set or deleted or expires, and for each request that is\n"
        "refused or whose condition is not met (kind unmet), of all clients: time, kind, client, user,\n"
        "version, key, and the size of the value, or the command and the reason. It says on stderr how\n"
        "many events it lost, and when it connects again after the connection ended.\n"
        "The store keeps the latest events in memory: --after 0 prints them first.\n"
        "\n"
        "  statestorectl monitor 'sensor/*' --token-file token.txt\n"
        "  statestorectl monitor --client gateway-1 --json | jq 'select(.kind == \"refused\")'\n";

static const char doctor_help[] =
        "Prints one line per finding: ok, warn or fail, what was measured, and what to change. A check\n"
        "is skipped if the access rules of the broker or the policy of the store do not let this user\n"
        "do what the check needs: most need keys below statestorectl/doctor/. Exit status 0 if there is\n"
        "no warn and no fail, 1 after a warn, 4 after a fail, 3 if the broker cannot be reached.\n"
        "\n"
        "Safe at a broker in use: publishes about 1500 messages of 16 bytes to a topic of its own, sends\n"
        "about 50 requests for a key of its own, and leaves nothing behind. Takes seconds if all is ok,\n"
        "and minutes if replies are slow but arrive in time.\n"
        "\n"
        "  statestorectl doctor\n"
        "  statestorectl doctor --json | jq 'select(.severity == \"fail\")'\n";

static const char test_help[] =
        "  reset                       delete all keys, fault rules and recorded requests; reset the\n"
        "                              clock\n"
        "  reset [client ID] [key PATTERN]\n"
        "                              delete only what concerns the client and the keys\n"
        "  seed FILE                   set keys from an export, or from a JSON list of objects whose\n"
        "                              members are keys and values; - is stdin\n"
        "  clock advance DURATION      keys expire, versions grow, remembered replies are forgotten\n"
        "  clock freeze | resume       stop and continue the clock; after a minute requests are\n"
        "                              refused, because their timestamps are ahead of the clock\n"
        "  expire KEY                  expire the key now; it must have been set with PX\n"
        "  outage broker DURATION      stop the broker of statestored --dev, and start it again\n"
        "  outage store DURATION       disconnect the store from the broker for a time\n"
        "  fault ACTION [client ID] [verb VERB] [key PATTERN] [count N]\n"
        "                              delay DURATION, no-answer, answer-twice, error TEXT, quota,\n"
        "                              kick; drop-notification, notify-twice\n"
        "  fault clear [client ID] [key PATTERN]\n"
        "  requests [client ID] [verb VERB] [key PATTERN] [after N]\n"
        "                              print the received requests, one JSON object per line\n"
        "  notifications [client ID] [key PATTERN] [after N]\n"
        "                              print the notifications, one JSON object per line\n"
        "  watchers [client ID] [key PATTERN]\n"
        "                              print which client watches which key\n"
        "  wait-for [client ID] [verb VERB] [key PATTERN] [after N] [count N] [timeout DURATION]\n"
        "                              wait for N matching requests; exit status 1 at the timeout\n"
        "\n"
        "after N selects the requests with a number above N; the command requests prints the numbers.\n"
        "A DURATION is 500ms, 10s, 5m, 1h or 2d.\n"
        "\n"
        "  statestorectl test clock advance 1h\n"
        "  statestorectl test fault error 'the disk is full' verb SET key 'log/*' count 1\n"
        "  statestorectl test wait-for key lock verb SET timeout 10s\n";

#define SELECTION_WORDS "client verb key"

static const struct command_words test_words[] = {
        { "", "reset seed clock expire outage fault requests notifications watchers wait-for" },
        { "reset", "client key" },
        { "seed", "FILE" },
        { "clock", "advance freeze resume" },
        { "outage", "broker store" },
        { "fault", "delay no-answer answer-twice error quota kick drop-notification notify-twice "
                   "clear " SELECTION_WORDS " count" },
        { "requests", SELECTION_WORDS " after" },
        { "notifications", "client key after" },
        { "watchers", "client key" },
        { "wait-for", SELECTION_WORDS " after count timeout" },
        { 0 },
};

const struct command commands[] = {
        { "get", "KEY...", "print the values of keys", get_help, 1, SIZE_MAX,
          .needs = NEEDS_CLIENT | NEEDS_KEYS, .options = "--json --hex", .run = command_get },
        { "set", "KEY VALUE", "store a value", set_help, 2, 2,
          .needs = NEEDS_CLIENT | NEEDS_KEYS | NEEDS_VALUE,
          .options = "--nx --nex --px --persist --fence --json --hex", .run = command_set },
        { "del", "KEY...", "delete keys", del_help, 1, SIZE_MAX, .needs = NEEDS_CLIENT | NEEDS_KEYS,
          .options = "--fence --json --hex", .run = command_del },
        { "vdel", "KEY VALUE", "delete a key if it has this value", vdel_help, 2, 2,
          .needs = NEEDS_CLIENT | NEEDS_KEYS | NEEDS_VALUE, .options = "--fence --json --hex",
          .run = command_vdel },
        { "scan", "[PATTERN]", "list the keys, all or by a pattern", scan_help, 0, 1,
          .needs = NEEDS_CLIENT | NEEDS_PATTERN, .options = "--long --json --hex", .run = command_scan },
        { "watch", "KEY...", "print each change of these keys, until interrupted", watch_help, 1, SIZE_MAX,
          .needs = NEEDS_BROKER | NEEDS_KEYS, .options = "--initial --count --json --hex",
          .run = command_watch },
        { "lock", "KEY -- COMMAND...", "run a command while holding a lock", lock_help, 1, 1,
          .needs = NEEDS_BROKER | NEEDS_KEYS | NEEDS_PROGRAM, .options = "--wait --lease --name --hex",
          .run = command_lock },
        { "ping", "", "check that the store replies, and how fast", ping_help, 0, 0, .needs = NEEDS_CLIENT,
          .options = "--json", .run = command_ping },
        { "export", "[PATTERN]", "print keys and values as lines of JSON", export_help, 0, 1,
          .needs = NEEDS_CLIENT | NEEDS_PATTERN, .options = "--data-dir --etcd", .run = command_export,
          .run_on_storage = command_export_stored },
        { "import", "FILE", "set keys from lines of JSON, as printed by export", import_help, 1, 1,
          .needs = NEEDS_CLIENT, .options = "--data-dir --etcd", .run = command_import,
          .run_on_storage = command_import_stored },
        { "check", "PATH", "verify the data directory of a stopped store, or a backup", check_help, 1, 1,
          .options = "", .run = command_check },
        { "backup", "DIR FILE", "copy the database of a stopped or running store", backup_help, 2, 2,
          .options = "", .run = command_backup },
        { "restore", "FILE DIR", "copy a backup into an empty data directory", restore_help, 2, 2,
          .options = "", .run = command_restore },
        { "cluster", "", "print who leads the cluster, and the members of its etcd", cluster_help, 0, 0,
          .needs = NEEDS_ETCD, .options = "--json", .run = command_cluster },
        { "step-down", "", "let another member lead the cluster", step_down_help, 0, 0, .needs = NEEDS_ETCD,
          .options = "", .run = command_step_down },
        { "console-token", "NAME", "make a token for a user of the console", console_token_help, 1, 1,
          .options = "--operator", .run = command_console_token },
        { "stat", "", "print how the store is: limits, load, warnings", stat_help, 0, 0,
          .options = "--http --token-file --json", .run = command_stat },
        { "clients", "", "print the clients of the store and their use of it", clients_help, 0, 0,
          .options = "--http --token-file --json", .run = command_clients },
        { "watchers", "[KEY]", "print which client watches which key", watchers_help, 0, 1,
          .needs = NEEDS_KEYS, .options = "--client --http --token-file --json", .run = command_watchers },
        { "monitor", "[PATTERN]", "print what happens to all keys, until interrupted", monitor_help, 0, 1,
          .needs = NEEDS_PATTERN, .options = "--client --after --count --http --token-file --json",
          .run = command_monitor },
        { "doctor", "", "find broker settings that drop or delay requests", doctor_help, 0, 0,
          .needs = NEEDS_BROKER, .options = "--json", .run = command_doctor },
        { "test", "WHAT [WORD]...", "control a store that runs with --control", test_help, 1,
          CONTROL_WORDS_MAX, .needs = NEEDS_CLIENT, .options = "", .run = command_test,
          .words = test_words },
};
const size_t n_commands = ARRAY_LENGTH(commands);

enum exit_code command_exit_code(const struct command *command, enum exit_code code) {
        if (code == EXIT_DONE || !command || !(command->needs & NEEDS_PROGRAM))
                return code;
        return EXIT_BESIDE_PROGRAM + (code == EXIT_TOO_LARGE ? EXIT_STORE_ERROR : code);
}

bool command_has_option(const struct command *command, const struct option *option) {
        struct slice rest = slice_from_string(command->options);
        bool has_option = option->is_common;

        while (rest.data && !has_option)
                has_option = slice_equal_string(slice_split(rest, ' ', &rest), option->flag);
        return has_option;
}
