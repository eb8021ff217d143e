/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/command.h"

#include <stdint.h>
#include <string.h>

const struct command commands[N_COMMANDS] = {
        [COMMAND_GET] = { "get", "KEY", "print a key's value",
                          "Prints the value and nothing else, so that a script has it byte for byte. On a "
                          "terminal a line\n"
                          "with the version follows, and a value that could upset the terminal is shown "
                          "escaped.\n"
                          "\n"
                          "  statestorectl get greeting\n"
                          "  level=$(statestorectl get level) || level=unknown\n"
                          "  statestorectl get firmware > firmware.bin\n"
                          "  statestorectl get greeting --json        value and version\n",
                          1, 1 },
        [COMMAND_SET] = { "set", "KEY VALUE", "store a value",
                          "Prints OK and the version that the value got. The version of a lock's key is the "
                          "fencing token\n"
                          "of its holder. What is read from stdin or a file is stored as it comes, line "
                          "ends included.\n"
                          "\n"
                          "  statestorectl set greeting 'hello world'\n"
                          "  statestorectl set session 42 --px 5m     gone after five minutes\n"
                          "  statestorectl set firmware --value-file firmware.bin\n"
                          "  date +%F | statestorectl set today -\n"
                          "\n"
                          "  # a lock for ten seconds, then a write that fails once another one has taken "
                          "the lock\n"
                          "  token=$(statestorectl set lock me --nex --px 10s) || exit\n"
                          "  statestorectl set valve open --fence \"${token#OK }\"\n"
                          "\n"
                          "--nex VALUE takes the argument behind it as VALUE where one is left over besides "
                          "KEY and VALUE;\n"
                          "--nex=VALUE always does.\n",
                          2, 2 },
        [COMMAND_DEL] = { "del", "KEY", "delete a key",
                          "Prints the version of the value that was deleted.\n"
                          "\n"
                          "  statestorectl del greeting\n"
                          "  statestorectl del state --fence 001696374425000:00000:StateStore\n",
                          1, 1 },
        [COMMAND_VDEL] = { "vdel", "KEY VALUE", "delete a key if it has this value",
                           "Prints the version of the value that was deleted.\n"
                           "\n"
                           "  statestorectl vdel lock me               give a lock back, unless another one "
                           "has it by now\n",
                           2, 2 },
        [COMMAND_SCAN] = { "scan", "[PATTERN]", "list the keys, all or those that match",
                           "Prints a key a line. A key with control characters in it is shown escaped; "
                           "--json and --hex show\n"
                           "every key exactly. The pattern is for the whole key: * any run, ? any one "
                           "character, [abc] [a-z]\n"
                           "[!a] one of these, [*] a star. A key may come twice if keys are set and deleted "
                           "meanwhile.\n"
                           "\n"
                           "  statestorectl scan\n"
                           "  statestorectl scan 'sensor/*/temperature'\n"
                           "  statestorectl scan 'tmp-*' | while read -r key; do statestorectl del "
                           "\"$key\"; done\n",
                           0, 1 },
        [COMMAND_WATCH] = { "watch", "KEY...", "print each change of keys, until interrupted",
                            "Prints a line a change: SET, version, key, value or DELETE, version, key, with "
                            "tabs between them.\n"
                            "A key that expires is deleted. The keys need not exist. Keys and values with "
                            "control characters\n"
                            "in them are shown escaped; --json and --hex show them exactly.\n"
                            "\n"
                            "  statestorectl watch lock\n"
                            "  statestorectl watch lock | head -n 1     wait for the next change\n"
                            "  statestorectl watch a b --json | jq .\n"
                            "\n"
                            "It registers again after a lost connection, and every two --timeouts, so that "
                            "a store that was\n"
                            "restarted knows of it. What changed in between is not seen, and stderr says "
                            "so.\n",
                            1, SIZE_MAX },
        [COMMAND_PING] = { "ping", "", "see whether the store answers, and how fast",
                           "Prints who answered and how long the round trip through the broker took.\n"
                           "\n"
                           "  statestorectl ping --timeout 500ms || echo 'no store'\n",
                           0, 0 },
        [COMMAND_EXPORT] = { "export", "[PATTERN]", "print keys with their values, as lines of JSON",
                             "Each line has key, value and version; with --data-dir, of a store that is "
                             "stopped, "
                             "deadline and\n"
                             "fencing token too: through the broker nobody can see those. What is no text "
                             "stands as "
                             "key_base64\n"
                             "and value_base64.\n"
                             "\n"
                             "  statestorectl export > keys.jsonl\n"
                             "  statestorectl export 'sensor/*' | jq -r .key\n"
                             "  statestorectl export --data-dir /var/lib/statestored > everything.jsonl\n",
                             0, 1 },
        [COMMAND_IMPORT] = { "import", "FILE", "set keys from lines of JSON, as export prints them",
                             "Through the broker each key gets a new version, and its token and what is "
                             "left until "
                             "its deadline;\n"
                             "with --data-dir, into a store that is stopped, it gets the line's own. Keys "
                             "whose "
                             "deadline has passed\n"
                             "are left out. A token that is more than a minute ahead of the clock ends the "
                             "import, and with\n"
                             "--data-dir so does a version. FILE - is stdin.\n"
                             "\n"
                             "  statestorectl import keys.jsonl\n"
                             "  statestorectl export -u mqtt://old | statestorectl import - -u mqtt://new\n",
                             1, 1 },
        [COMMAND_CHECK] = { "check", "DIR", "verify the data directory of a stopped store",
                            "Reads everything and changes nothing. Exit status 4 where it is damaged.\n"
                            "\n"
                            "  statestorectl check /var/lib/statestored\n",
                            1, 1 },
        [COMMAND_BACKUP] = { "backup", "DIR FILE",
                             "copy the database of a data directory, also while its store runs",
                             "The copy is consistent: what was acknowledged before it began is in it. FILE "
                             "must not "
                             "exist yet. To\n"
                             "go back to it, put it in the place of statestored.db into the data directory "
                             "of a stopped store,\n"
                             "with no other file beside it, and give it to that directory's owner.\n"
                             "\n"
                             "  statestorectl backup /var/lib/statestored monday.db\n",
                             2, 2 },
        [COMMAND_REPLAY] = { "replay", "FILE",
                             "send recorded requests again, and see what is answered otherwise",
                             "FILE is what statestored --record has written; - is stdin. Each request is\n"
                             "sent as it was, the __srcId that it bears too, once the one before is\n"
                             "answered. Prints those that are answered otherwise, with both answers;\n"
                             "versions and times differ by nature and are not compared, nor are\n"
                             "notifications. Exit status 1 where any differs.\n"
                             "\n"
                             "  statestorectl replay a.jsonl          at a store that begins as the "
                             "recorded one\n"
                             "  statestorectl replay a.jsonl --pace   keys expire between requests as they "
                             "did\n"
                             "\n"
                             "Left out are requests that the broker or the store must refuse by their\n"
                             "envelope, later pages of a SCAN, and what asks for --control where the store\n"
                             "does not have it. What had no answer is waited for until the store is done\n"
                             "with it. Each recorded client has a connection of its own, under --client-id\n"
                             "and a number; from the hundredth on they share one. So the store can tell\n"
                             "them apart, but what its policy grants by client id may differ.\n",
                             1, 1 },
        [COMMAND_DOCTOR] = { "doctor", "",
                             "see what at a broker loses or slows requests, and what to change",
                             "Measures, and prints a line for each finding: ok, warn or fail, what was\n"
                             "measured, what to change. Exit status 0 where all is ok, 1 where there is a\n"
                             "warn, 4 where there is a fail.\n"
                             "\n"
                             "Safe at a broker in use: it publishes about 1600 messages, mostly of 16 "
                             "bytes\n"
                             "and one of 256 KiB, to topics of its own, sends some 50 requests for a key "
                             "of\n"
                             "its own, and leaves nothing behind. It takes seconds where all is ok, and\n"
                             "less than two minutes in any case at the default --timeout.\n"
                             "\n"
                             "  statestorectl doctor\n"
                             "  statestorectl doctor --json | jq 'select(.severity == \"fail\")'\n",
                             0, 0 },
        [COMMAND_TEST] = { "test", "WHAT [WORD]...", "steer a store that was started with --control",
                           "reset                       empty, as just started without --seed: keys, "
                           "clock,\n"
                           "                            rules, requests\n"
                           "seed FILE                   set keys, exported or a list of objects; - is "
                           "stdin\n"
                           "clock advance DURATION      keys expire, versions grow, answers are forgotten\n"
                           "clock freeze | resume       stop the clock, go on from there; requests of "
                           "clients\n"
                           "                            that are a minute ahead of it are refused\n"
                           "clock skew CLIENT DURATION  take its timestamps for so far ahead, behind with "
                           "-\n"
                           "fault ACTION [client ID] [verb VERB] [key PATTERN] [count N] [probability P] "
                           "[seed N]\n"
                           "                            delay DURATION, no-answer, answer-twice, error "
                           "TEXT, quota,\n"
                           "                            wrong-correlation, malformed, disconnect;\n"
                           "                            drop-notification, notify-twice\n"
                           "fault list | clear\n"
                           "requests [client ID] [verb VERB] [key PATTERN] [after N]\n"
                           "                            print what was asked, a line of JSON each\n"
                           "wait-for [client ID] [verb VERB] [key PATTERN] [after N] [count N] [timeout "
                           "DURATION]\n"
                           "                            until it was asked, or --timeout is over: exit "
                           "status 1\n"
                           "\n"
                           "A DURATION is 500ms, 10s, 5m, 1h or 2d.\n"
                           "\n"
                           "  statestorectl test clock advance 1h\n"
                           "  statestorectl test clock skew client-1 -90s\n"
                           "  statestorectl test fault error 'the disk is full' verb SET key 'log/*' count "
                           "1\n"
                           "  statestorectl test wait-for key lock verb SET timeout 10s\n",
                           1, SESSION_WORDS_MAX },
        [COMMAND_STAT] = { "stat", "", "print the numbers that one asks for first",
                           "Reads /metrics, which statestored serves with --http-listen, at --url\n"
                           "http://HOST:PORT, by default where --config FILE, the store's, or its\n"
                           "variable STATESTORE_HTTP_LISTEN says, else at http://127.0.0.1:9464. Times are\n"
                           "of all requests since the store was started.\n"
                           "\n"
                           "  statestorectl stat\n"
                           "  statestorectl stat --json | jq .keys\n"
                           "  statestorectl stat --url http://gateway:9464\n"
                           "  statestorectl stat --config /etc/statestored/statestored.conf\n",
                           0, 0 },
        [COMMAND_TOP] = { "top", "", "show them again and again, with what happens a second",
                          "As stat, every --interval, until q, Ctrl-C or the end of its input. Times are\n"
                          "of the requests since the table before. Where stdout is no terminal the\n"
                          "tables follow each other.\n"
                          "\n"
                          "  statestorectl top\n"
                          "  statestorectl top --interval 10s > figures.txt\n",
                          0, 0 },
};

const struct command *command_find(const char *name) {
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (strcmp(name, commands[i].name) == 0)
                        return &commands[i];
        return NULL;
}
