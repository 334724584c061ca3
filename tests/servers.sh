#!/usr/bin/env bash
# Starts servers on free ports of this host for trying things out by hand, and prints the URL to use. They are stopped,
# and what they wrote is removed, when Enter is pressed, when the input ends, or at a signal.
#
#   ./tests/servers.sh replicas     # a master and two replicas
#   ./tests/servers.sh sentinel     # the same, and three sentinels
#   ./tests/servers.sh cluster      # three masters, each with a replica
#
# CROSSLOCK_TEST_REDIS_SERVER names another server program than redis-server, such as a valkey-server.
set -euo pipefail

program="${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}"
host=127.0.0.1
pids=() ports=()

fail() { printf '%s\n' "$*" >&2; exit 1; }

ask() { redis-cli -h "$host" -p "$1" "${@:2}" 2>/dev/null; }

# wait_for WHAT COMMAND...: waits until the command succeeds.
wait_for() {
  local end=$((SECONDS + 60))
  until "${@:2}"; do
    [ "$SECONDS" -lt "$end" ] || fail "waited in vain for $1"
    sleep 0.05
  done
}

# Below the ports that Linux gives to clients.
free_port() {
  local port
  while port=$((15000 + RANDOM % 16000)); (: < "/dev/tcp/$host/$port") 2>/dev/null; do :; done
  echo "$port"
}

# Whether the last server has ended, or answers; another's answer doesn't count.
is_decided() { ! kill -0 "${pids[-1]}" 2>/dev/null || answers; }
answers() { ask "$port" info server | grep -q "^process_id:${pids[-1]}"$'\r'; }

# start KIND LINE...: starts a server with these lines in its configuration; `port` is its port then.
start() {
  local kind="$1" directory bus
  shift
  directory="$work/${#pids[@]}"
  mkdir "$directory"
  port="$(free_port)" bus="$(free_port)"
  printf '%s\n' "bind $host" "port $port" "dir \"$directory\"" 'save ""' "repl-diskless-sync-delay 0" "$@" \
    > "$directory/redis.conf"
  local command=("$program" "$directory/redis.conf")
  case "$kind" in
    sentinel) command+=(--sentinel) ;;
    node) echo "cluster-port $bus" >> "$directory/redis.conf" ;;
  esac
  # The kernel kills them if this script is killed.
  "${mortal[@]}" "${command[@]}" > "$directory/log" 2>&1 < /dev/null &
  pids+=($!) ports+=("$port")
  wait_for "$kind $host:$port" is_decided
  kill -0 $! 2>/dev/null || { cat "$directory/log" >&2; fail "$program doesn't start"; }
  printf '%-8s %s:%s  process %s\n' "$kind" "$host" "$port" "$!"
}

stop() {
  trap - EXIT
  local alive
  # Without those that were killed by hand, whose ids may be others' now.
  mapfile -t alive < <(jobs -pr)
  # Bash would tell of each that it was killed.
  { [ ${#alive[@]} -eq 0 ] || kill -KILL "${alive[@]}" || true; wait; } 2>/dev/null
  rm -rf "$work"
}

# So many online replicas a master says it has.
has_replicas() { [ "$(ask "$1" info replication | grep -c state=online)" = "$2" ]; }
knows_all() {
  local state
  state="$(ask "$1" sentinel master mymaster | paste -sd' ')"
  [[ "$state" == *"num-slaves 2 num-other-sentinels 2 "* ]]
}
is_ok() { ask "$1" cluster info | grep -q '^cluster_state:ok'; }

start_replicated() {
  start master
  master="$port"
  start replica "replicaof $host $master"
  start replica "replicaof $host $master"
  wait_for "the replicas" has_replicas "$master" 2
}

start_sentinels() {
  local sentinel
  for _ in 1 2 3; do
    start sentinel "sentinel monitor mymaster $host $master 2" "sentinel down-after-milliseconds mymaster 1000" \
      "sentinel failover-timeout mymaster 5000"
    # Otherwise they take two seconds to hear of each other.
    ask "$port" sentinel debug publish-period 100 > /dev/null || true
  done
  for sentinel in "${ports[@]: -3}"; do
    wait_for "the sentinels to know each other" knows_all "$sentinel"
    ask "$sentinel" sentinel debug publish-period 2000 > /dev/null || true
  done
}

start_cluster() {
  local node
  for _ in 1 2 3 4 5 6; do
    start node "cluster-enabled yes" "cluster-node-timeout 2000"
  done
  redis-cli --cluster create "${ports[@]/#/$host:}" --cluster-replicas 1 --cluster-yes > "$work/create" ||
    { cat "$work/create" >&2; fail "redis-cli can't make a cluster of them"; }
  for node in "${ports[@]}"; do
    wait_for "the cluster" is_ok "$node"
  done
}

# The addresses of these ports, with commas between.
hosts() { local all=("${@/#/$host:}"); (IFS=,; echo "${all[*]}"); }

command -v "$program" > /dev/null || fail "$program isn't there: ./tests/run.sh installs redis-server"
command -v redis-cli > /dev/null || fail "redis-cli isn't there"
mortal=()
if setpriv --pdeathsig KILL true 2>/dev/null; then
  mortal=(setpriv --pdeathsig KILL)
fi
work="$(mktemp -d "${TMPDIR:-/tmp}/crosslock-servers-XXXXXX")"
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

case "${1:-}" in
  replicas) start_replicated; url="redis://$host:$master/?min_replicas=1" ;;
  sentinel) start_replicated; start_sentinels; url="redis+sentinel://$(hosts "${ports[@]: -3}")/mymaster" ;;
  cluster) start_cluster; url="redis+cluster://$(hosts "${ports[@]}")" ;;
  *) fail "usage: $0 replicas | sentinel | cluster" ;;
esac

printf '\n%s\n\nEnter stops them.\n' "$url"
read -r || true
