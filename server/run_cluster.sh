# SPDX-License-Identifier: Apache-2.0
#
# "run.sh --cluster": three machines on 127.0.0.11 to 127.0.0.13, and HAProxy at the address of the clients. Sourced by run.sh,
# which has set $port, $build, $directory and $use.

# shellcheck disable=SC2154

boot_seconds=10
processes=

stop() {
        trap - EXIT INT TERM
        for process in $processes; do
                kill "$process" 2>/dev/null || :
        done
        wait
        until rm -rf "$directory" 2>/dev/null; do # the kernel is ending the last processes
                sleep 0.1
        done
}
trap 'stop; exit 1' EXIT
trap 'stop; exit 0' INT TERM

# start COMMAND...: run the command until this process ends. In a session of its own, so that Ctrl-C reaches only run.sh.
start() {
        setsid setpriv --pdeathsig KILL -- "$@" &
        processes="$processes $!"
}

if curl -s http://127.0.0.11:2379/version >"$directory/page"; then
        echo 'run.sh: an etcd runs at 127.0.0.11:2379 already: end it, or the other "run.sh --cluster"' >&2
        exit 1
fi

sed -e "s|^\( *bind \):1883|\1127.0.0.1:$port|" -e "s|192\.0\.2\.\(1.\):1883|127.0.0.\1:$port|" \
        conf/cluster/haproxy.cfg >"$directory/haproxy.cfg"
start "$(PATH=$PATH:/usr/sbin command -v haproxy)" -db -f "$directory/haproxy.cfg" >"$directory/haproxy.log" 2>&1
haproxy=$!

number=11
for name in a b c; do
        mkdir "$directory/$name"
        write_broker_configuration "$directory/$name/mosquitto.conf" 127.0.0.$number
        start sh server/keep_running.sh "$directory/$name/machine" $boot_seconds \
                sh server/run_machine.sh $name "$port" "$PWD/$build" "$directory/$name"
        number=$((number + 1))
done

# leader_is_ready: whether a member serves.
leader_is_ready() {
        for address in 127.0.0.11 127.0.0.12 127.0.0.13; do
                ! curl -sf -o "$directory/page" "http://$address:9464/readyz" || return 0
        done
        return 1
}

until leader_is_ready; do
        if ! kill -0 $haproxy 2>/dev/null; then
                echo "run.sh: haproxy ended:" >&2
                cat "$directory/haproxy.log" >&2
                echo "run.sh: if port $port is in use, choose another one: PORT=11883 sh server/run.sh --cluster" >&2
                exit 1
        fi
        sleep 0.1
done

cat <<TEXT

The state store is at mqtt://127.0.0.1:$port. $use

This is the address of HAProxy. It leads to the broker of one of three machines. Machine a is 127.0.0.11, b is
127.0.0.12, and c is 127.0.0.13. Each has etcd, mosquitto and statestored. The logs are in $directory.

Which machine leads?

  export STATESTORE_ETCD_ENDPOINTS=http://127.0.0.11:2379,http://127.0.0.12:2379,http://127.0.0.13:2379
  statestorectl cluster

Kill a machine, here a. It starts again after $boot_seconds s:

  kill -9 \$(cat $directory/a/machine.pid)

Let the leader step down, here a:

  RUNTIME_DIRECTORY=$directory/a/run statestorectl step-down

Ctrl-C stops all.
TEXT

wait
