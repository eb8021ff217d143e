# SPDX-License-Identifier: Apache-2.0
"""statestorectl lock."""

import os
import pty
import re
import signal
import subprocess
import termios
from collections import Counter
from fcntl import ioctl

import pytest

from support.control import Control, value_of
from support.ctl import DONE, Ctl, environment
from support.ctl_run import Run
from support.process import CTL, PATIENCE, paused, wait_until

NOT_ACQUIRED, USAGE, NO_REPLY, STORE_ERROR, LOST, NOT_EXECUTABLE, NOT_FOUND = range(121, 128)

# Too long for a busy machine to lose it.
LONG = ("--lease", "1000s")

# The test waits for its end.
SHORT = ("--lease", "5s")

# Says that it runs, and ends when it reads a line, or at the end of its stdin.
UNTIL_LINE = ["sh", "-c", "echo running $$ $STATESTORE_FENCE; read line; exit 0"]


def end(run):
    """Let UNTIL_LINE end, and return the exit status of statestorectl."""
    run.say("end")
    return run.status()


@pytest.fixture
def run():
    runs = []

    def start(ctl, *arguments, **popen):
        runs.append(Run(ctl, *arguments, **popen))
        return runs[-1]

    yield start
    for each in runs:
        each.kill()


@pytest.fixture
def hold(run, key):
    """Starts UNTIL_LINE with the lock, and returns the run, the process id and the token when it runs."""

    def start(ctl, *options, program=UNTIL_LINE):
        holder = run(ctl, "lock", key, *options, "--", *program)
        word, pid, token = holder.words()
        assert word == "running"
        return holder, int(pid), token

    return start


@pytest.fixture
def control_site(make_site):
    site = make_site()
    site.start_store("--control")
    return site


def wait_for_sets(control, client_id, count):
    """Wait until the store has received so many SETs of this client."""
    assert control.do("wait-for", "client", client_id, "verb", "SET", "count", str(count), "timeout", f"{PATIENCE}s") == b":1\r\n"


def is_alive(pid):
    """Whether the process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


# Many holders


N_PROCESSES = 50


@pytest.mark.not_sanitized("the tests below take the lock with fewer processes")
def test_many_processes_exclude_each_other(site, site_ctl, tmp_path, run):
    held, tokens = tmp_path / "held", tmp_path / "tokens"
    program = f"""
        mkdir {held} || exit 50
        echo $STATESTORE_FENCE >> {tokens}
        n=$({CTL} get counter || echo 0)
        {CTL} set counter $((n + 1)) --fence "$STATESTORE_FENCE" || exit 51
        rmdir {held} || exit 52"""

    runs = [run(site_ctl, "lock", "lock", *LONG, "--", "sh", "-c", program) for _ in range(N_PROCESSES)]

    assert Counter(each.status() for each in runs) == {DONE: N_PROCESSES}
    client = site.connect()
    assert value_of(client, "counter") == b"%d" % N_PROCESSES
    assert value_of(client, "lock") is None
    listed = tokens.read_text().split()
    assert len(set(listed)) == N_PROCESSES
    assert listed == sorted(listed), "each holder has a newer token than the one before"


def test_a_stopped_holder_cannot_write_after_the_next_one_and_is_killed(ctl, client, key, hold):
    writer = ["sh", "-c", f"""
        echo running $$ $STATESTORE_FENCE
        while read value; do {CTL} set {key}-data $value --fence $STATESTORE_FENCE 2>&1; done"""]
    first, first_pid, first_token = hold(ctl, *SHORT, program=writer)
    first.say("one")
    assert first.words()[0] == "OK"

    with paused(first.child):
        second, _, second_token = hold(ctl, *LONG, program=writer)
        assert second_token > first_token
        second.say("two")
        assert second.words()[0] == "OK"
        first.say("three")
        assert "lower version" in first.line()
        assert is_alive(first_pid)

    assert first.status() == LOST
    first.wait_for_note("lost the lock")
    assert not is_alive(first_pid)
    assert value_of(client, f"{key}-data") == b"two"


def test_a_holder_that_was_stopped_past_its_lease_does_not_take_the_lock_again(ctl, client, key, hold):
    holder, pid, _ = hold(ctl, *SHORT)
    client.watch(key)

    with paused(holder.child):
        assert client.next_change() == [b"DELETE"]

    assert holder.status() == LOST
    assert not is_alive(pid)


@pytest.mark.parametrize("option", ["--client-id", "--name"])
def test_two_holders_of_one_name_exclude_each_other(ctl, client, key, option):
    """Published clients set the key with NEX, and the second one would renew the lock of the first."""
    client.request("SET", key, "me")

    assert ctl.run("lock", key, option, "me", "--wait", "0s", "--", "true").returncode == NOT_ACQUIRED


# Waiting


def test_a_lock_of_a_published_client_excludes_and_its_release_wakes_without_polling(control_site, run, hold):
    site = control_site
    client, control = site.connect(), site.connect(kind=Control)
    client.request("SET", "lock", client.id, "NEX", "PX", "1000000")
    waiter = run(Ctl(site.broker.port), "lock", "lock", "--client-id", "waiter", *LONG, "--", *UNTIL_LINE)
    wait_for_sets(control, "waiter", 2)
    for _ in range(10):
        client.request("SET", "lock", client.id, "NEX", "PX", "1000000")  # the holder renews
    other = run(Ctl(site.broker.port), "lock", "lock", "--client-id", "other", "--lease", "1s", "--", "true")
    wait_for_sets(control, "other", 4)  # after at least two leases of a second
    other.kill()

    client.request("VDEL", "lock", client.id)
    _, _, token = waiter.words()

    held = client.request("GET", "lock")
    assert held.payload == b"$6\r\nwaiter\r\n", "the value is the client id"
    assert held.prop("__ts") == token, "the token is the version of the lock"
    assert client.request("SET", "lock", client.id, "NEX", "PX", "1000000").payload == b":-1\r\n"
    assert end(waiter) == DONE
    assert client.request("GET", "lock").payload == b"$-1\r\n"
    requests = control.lines("requests", "client", "waiter")
    assert [each["verb"] for each in requests] == ["SET", "KEYNOTIFY", "SET", "SET", "VDEL"]


def test_a_wait_without_notifications_tries_again_after_each_lease(make_site, run):
    site = make_site()
    site.start_store("--control")
    client, control = site.connect(), site.connect(kind=Control)
    control.do("fault", "drop-notification")
    client.request("SET", "lock", client.id)
    waiter = run(Ctl(site.broker.port), "lock", "lock", "--client-id", "waiter", "--lease", "1s", "--", "true")
    wait_for_sets(control, "waiter", 3)

    client.request("DEL", "lock")

    assert waiter.status() == DONE


def test_only_trying_and_a_limited_wait_end_with_121_and_without_the_command(ctl, client, key):
    client.request("SET", key, "another")

    tried = ctl.run("lock", key, "--wait", "0s", "--", "echo", "ran")
    waited = ctl.run("lock", key, "--wait", "10ms", "--", "echo", "ran")

    assert (tried.returncode, tried.stdout) == (waited.returncode, waited.stdout) == (NOT_ACQUIRED, b"")
    assert b"another holder" in tried.stderr and b"waiting" not in tried.stderr
    assert b"not acquired within 10ms" in waited.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_the_command_does_not_run(ctl, client, key, run, number):
    client.request("SET", key, "another")
    waiter = run(ctl, "lock", key, "--", "echo", "ran")
    waiter.wait_for_note("waiting for the lock")

    waiter.send_signal(number)

    assert waiter.status() == -number
    client.request("DEL", key)
    assert waiter.line() is None
    assert value_of(client, key) is None


def test_a_waiter_survives_a_restart_of_the_broker(site, site_ctl, run):
    client = site.connect()
    client.request("SET", "lock", "another")
    waiter = run(site_ctl, "lock", "lock", *LONG, "--", *UNTIL_LINE)
    waiter.wait_for_note("waiting for")

    site.broker.kill()
    waiter.wait_for_note('cannot acquire the lock "lock"')
    site.broker.start_again()
    waiter.wait_for_note("registered again")
    site.connect().request("DEL", "lock")

    assert waiter.words()[0] == "running"
    assert end(waiter) == DONE


def test_a_waiter_survives_a_restart_of_the_store(make_site, run):
    """The store has neither the lock nor the registration any more, so only the next attempt succeeds."""
    site = make_site(plugin=False)
    site.start_store("--control")
    site.connect().request("SET", "lock", "another")
    waiter = run(Ctl(site.broker.port), "lock", "lock", "--client-id", "waiter", *SHORT, "--", *UNTIL_LINE)
    wait_for_sets(site.connect(kind=Control), "waiter", 2)  # the store has replied to all requests before the wait

    site.store.kill()
    site.store.start()

    assert waiter.words()[0] == "running"
    assert end(waiter) == DONE


# Holding


def test_a_lock_is_renewed_until_the_command_ends(control_site, hold):
    site = control_site
    control = site.connect(kind=Control)
    holder, _, _ = hold(Ctl(site.broker.port), "--client-id", "holder", *SHORT)

    wait_for_sets(control, "holder", 4)

    assert end(holder) == DONE
    renewals = control.lines("requests", "client", "holder")
    assert [each["verb"] for each in renewals][:4] == ["SET"] * 4 and renewals[-1]["verb"] == "VDEL"


IGNORES_TERM = """trap '' TERM; echo running $$ $STATESTORE_FENCE; while :; do read line || sleep 1; done"""
HAS_DESCENDANTS = """
    sh -c "trap '' TERM; echo child \\$\\$; while :; do sleep 1; done" &
    wait_for=$!; read line < /dev/null; echo running $$ $STATESTORE_FENCE; wait $wait_for"""
SAYS_TERM = """
    trap 'echo terminated; exit 0' TERM
    echo running $$ $STATESTORE_FENCE; while :; do sleep 1; done"""


@pytest.fixture
def cut_off(site, proxy_of):
    """A holder of the lock behind a proxy, which the test cuts, and statestorectl with a direct connection."""
    site.start_store()
    proxy = proxy_of(site)
    return proxy, Ctl(proxy.port), Ctl(site.broker.port)


# statestorectl kills the command when a tenth of the lease is left.
WITH_MARGIN = ("--lease", "10s")


def is_running(pid):
    """Return the shell command that tests whether the process exists and is not a zombie. Its new parent may reap it late."""
    return f"test -e /proc/{pid}/exe"


@pytest.mark.parametrize("program", [SAYS_TERM, IGNORES_TERM], ids=["ends_at_sigterm", "ignores_sigterm"])
def test_a_holder_without_a_connection_ends_before_the_next_one_begins(cut_off, hold, key, run, program):
    proxy, far, near = cut_off
    holder, pid, _ = hold(far, *WITH_MARGIN, program=["sh", "-c", program])
    check = f"{is_running(pid)} && echo alive || echo dead"
    waiter = run(near, "lock", key, *WITH_MARGIN, "--", "sh", "-c", check)
    waiter.wait_for_note("waiting for")

    proxy.cut()

    assert waiter.line() == "dead"
    assert holder.status() == LOST
    holder.wait_for_note("cannot renew")
    holder.wait_for_note("the command was ended")
    assert holder.line() == ("terminated" if program is SAYS_TERM else None)


def test_a_holder_replaces_a_connection_that_the_network_has_dropped(cut_off, hold):
    proxy, far, _ = cut_off
    holder, _, _ = hold(far, "--lease", "15s")

    proxy.swallow()
    holder.wait_for_note("cannot renew")
    holder.wait_for_note("renewed the lock")

    assert end(holder) == DONE


def test_the_process_group_of_the_command_ends_with_the_lease(cut_off, run, key):
    proxy, far, near = cut_off
    holder = run(far, "lock", key, *WITH_MARGIN, "--", "sh", "-c", HAS_DESCENDANTS)
    pids = dict(line.split()[:2] for line in (holder.line(), holder.line()))
    check = "".join(f"{is_running(pid)} && echo alive; " for pid in pids.values())
    waiter = run(near, "lock", key, *WITH_MARGIN, "--", "sh", "-c", f"{check} echo done")
    waiter.wait_for_note("waiting for")

    proxy.cut()

    assert waiter.line() == "done"
    assert holder.status() == LOST


def test_a_holder_loses_the_lock_when_the_store_is_killed(site, site_ctl, hold):
    holder, pid, _ = hold(site_ctl, *SHORT)

    site.store.kill()

    assert holder.status() == LOST
    assert not is_alive(pid)
    holder.wait_for_note("no reply within")
    site.store.start()


def test_a_holder_survives_a_restart_of_the_store_without_data(site, site_ctl, hold, key):
    holder, _, token = hold(site_ctl, "--lease", "20s")

    site.store.kill()
    site.store.start()
    client = site.connect()
    restored = wait_until(lambda: client.request("GET", key).prop("__ts"), "the lock was set again")

    assert restored > token
    assert end(holder) == DONE


def test_a_holder_survives_a_restart_of_the_broker(site, site_ctl, hold):
    """The first renewal is lost if the store connects later, and must not be awaited for long."""
    holder, _, _ = hold(site_ctl, "--client-id", "holder", *LONG, "--timeout", "1000s")

    with site.store.paused():
        site.broker.kill()
        holder.wait_for_note("cannot renew")
        seen = len(site.broker.log())
        site.broker.start_again()
        site.broker.wait_for_log(r"as holder \(", after=seen)
    holder.wait_for_note("renewed the lock")

    assert end(holder) == DONE


def test_the_command_is_killed_when_another_client_has_taken_the_lock(ctl, client, key, hold):
    holder, pid, _ = hold(ctl, *SHORT, program=["sh", "-c", SAYS_TERM])

    client.request("SET", key, "another")

    assert holder.status() == LOST
    assert holder.line() is None, "there is no time for SIGTERM"
    assert not is_alive(pid)
    assert value_of(client, key) == b"another"


def test_a_lock_that_was_deleted_meanwhile_is_reported(ctl, client, key, hold):
    holder, _, _ = hold(ctl, *LONG)

    client.request("DEL", key)

    assert end(holder) == LOST
    holder.wait_for_note("before the command ended")


def test_the_command_ends_when_statestorectl_is_killed(ctl, hold):
    holder, pid, _ = hold(ctl, *LONG)

    holder.send_signal(signal.SIGKILL)

    wait_until(lambda: not is_alive(pid), "the command has ended")


# The command


@pytest.mark.parametrize("program, status", [
    (["true"], 0),
    (["sh", "-c", "exit 1"], 1),
    (["sh", "-c", "exit 255"], 255),
    (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
    (["/nonexistent"], NOT_FOUND),
    (["nonexistent-program"], NOT_FOUND),
    ([""], NOT_FOUND),
    (["/dev/null"], NOT_EXECUTABLE),
])
def test_the_exit_status_is_that_of_the_command(ctl, client, key, program, status):
    assert ctl.run("lock", key, "--", *program).returncode == status
    assert value_of(client, key) is None, "the lock was released"


@pytest.mark.parametrize("arguments, status, text", [
    (["lock"], USAGE, b"too few arguments"),
    (["lock", "key"], USAGE, b"too few arguments"),
    (["lock", "key", "--"], USAGE, b"too few arguments"),
    (["lock", "key", "--wait", "soon", "--", "true"], USAGE, b"--wait"),
    (["lock", "key", "--lease", "999ms", "--", "true"], USAGE, b"--lease"),
    (["lock", "key", "--name", "", "--", "true"], USAGE, b"--name"),
    (["lock", "0g", "--hex", "--", "true"], USAGE, b"0g"),
    (["lock", "", "--", "true"], STORE_ERROR, b"the key length is zero"),
    (["--port", "1", "lock", "key", "--", "true"], NO_REPLY, b"cannot connect"),
])
def test_an_error_has_a_status_that_programs_rarely_have(ctl, arguments, status, text):
    ended = ctl.run(*arguments)

    assert ended.returncode == status
    assert text in ended.stderr
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [
    ["KEY", "--", "echo", "--hex", "-v"],
    ["KEY", "echo", "--hex", "-v"],
    ["--lease", "20s", "--", "KEY", "echo", "--hex", "-v"],
])
def test_the_options_of_the_command_are_left_to_it(ctl, key, arguments):
    assert ctl.ok("lock", *[word.replace("KEY", key) for word in arguments]) == b"--hex -v\n"


def test_the_command_has_stdin_and_no_other_new_descriptors(ctl, key):
    assert ctl.ok("lock", key, "--", "cat", stdin=b"text") == b"text"
    listed = ctl.ok("lock", key, "--", "ls", "/proc/self/fd")
    assert listed == subprocess.run(ctl.argv([])[:-1] + ["ls", "/proc/self/fd"], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, stdin=subprocess.PIPE, check=True).stdout


def test_the_command_has_the_token_and_can_use_statestorectl(ctl, client, key):
    ctl.variables["CLIENT_ID"] = "me"
    program = f"{CTL} set {key}-data value --fence $STATESTORE_FENCE && echo ${{STATESTORE_CLIENT_ID-unset}}"

    assert ctl.ok("lock", key, "--", "sh", "-c", program).endswith(b"unset\n")
    assert client.request("SET", f"{key}-data", "value").payload.startswith(b"-ERR a fencing token is required")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
                                    signal.SIGUSR2])
def test_signals_are_forwarded_to_the_command(ctl, hold, number):
    if signal.getsignal(number) == signal.SIG_IGN:  # as under nohup: a shell cannot trap it
        signal.signal(number, signal.SIG_DFL)
    program = f"trap 'echo got {number}; exit 9' {int(number)}; echo running $$ $STATESTORE_FENCE; while :; do sleep 0.1; done"
    holder, _, _ = hold(ctl, *LONG, program=["sh", "-c", program])

    holder.send_signal(number)

    assert holder.line() == f"got {number}"
    assert holder.status() == 9


def test_a_signal_that_was_ignored_before_stays_ignored(ctl, hold):
    ignoring = ["env", "--ignore-signal=HUP"]
    ctl.argv = lambda arguments, argv=ctl.argv: ignoring + argv(arguments)
    holder, _, _ = hold(ctl, *LONG)

    holder.send_signal(signal.SIGHUP)

    assert end(holder) == DONE


class OnTerminal:
    """A process that is the leader of a session with a terminal."""

    def __init__(self, ctl, *arguments):
        self._ours, theirs = pty.openpty()

        def take_terminal():
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # it is ignored if the tests run in the background
            ioctl(theirs, termios.TIOCSCTTY, 0)

        self.output = b""
        self.child = subprocess.Popen(ctl.argv(arguments), stdin=theirs, stdout=theirs, stderr=theirs,
                                      env=environment(ctl.variables), start_new_session=True,
                                      preexec_fn=take_terminal)
        os.close(theirs)

    def read_until(self, text):
        while text not in self.output:
            self.output += os.read(self._ours, 4096)

    def type(self, text):
        os.write(self._ours, text)

    def close(self):
        self.child.kill()
        self.child.wait()
        os.close(self._ours)


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments):
        opened.append(OnTerminal(*arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_the_terminal_is_that_of_the_command(ctl, key, terminal):
    """Ctrl-C reaches the command once, and the command reads the terminal."""
    program = """
        trap 'echo interrupted' INT; trap 'echo forwarded' USR1
        echo running; while read line || [ $? -gt 128 ]; do echo read $line; [ "$line" = end ] && exit 5; done"""
    here = terminal(ctl, "lock", key, *LONG, "--", "bash", "-c", program)
    here.read_until(b"running\r\n")

    with paused(here.child):  # otherwise the kernel may deliver two SIGINT as one
        here.type(b"\x03")
        here.read_until(b"interrupted\r\n")
    here.child.send_signal(signal.SIGUSR1)  # statestorectl reads it after SIGINT
    here.read_until(b"forwarded\r\n")
    here.type(b"end\n")
    here.read_until(b"read end\r\n")

    assert here.child.wait(PATIENCE) == 5
    assert here.output.count(b"interrupted") == 1


def test_ctrl_c_that_ends_the_command_ends_statestorectl_by_the_same_signal(ctl, client, key, terminal):
    """Otherwise a shell would assume that SIGINT was handled, and would continue its script."""
    here = terminal(ctl, "lock", key, *LONG, "--", "sh", "-c", "echo running; read line")
    here.read_until(b"running\r\n")

    here.type(b"\x03")

    assert here.child.wait(PATIENCE) == -signal.SIGINT
    assert value_of(client, key) is None


def test_ctrl_z_stops_the_command_and_statestorectl_until_both_continue(ctl, key, terminal):
    here = terminal(ctl, "lock", key, *LONG, "--", "sh", "-c", "echo running; read line; echo read $line")
    here.read_until(b"running\r\n")

    here.type(b"\x1a")
    _, status = os.waitpid(here.child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)

    here.child.send_signal(signal.SIGCONT)
    here.type(b"end\n")
    here.read_until(b"read end\r\n")
    assert here.child.wait(PATIENCE) == DONE


# The name of a leader


def test_a_candidate_is_elected_when_the_leader_has_ended(ctl, client, key, run):
    first = run(ctl, "lock", key, "--name", "one", *LONG, "--", *UNTIL_LINE)
    assert first.words()[0] == "running"
    second = run(ctl, "lock", key, "--name", "two", *LONG, "--", *UNTIL_LINE)
    second.wait_for_note(f'waiting for the lock "{key}"')
    assert value_of(client, key) == b"one"

    assert end(first) == DONE

    assert re.fullmatch(r"running \d+ [\d:]+:StateStore", second.line())
    assert value_of(client, key) == b"two"
    assert end(second) == DONE
