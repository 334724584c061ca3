#!/usr/bin/env bash
# Runs two versions of the program beside each other, in a directory and on a Redis server. Both change one counter under
# one lock: no increment may be lost, and each holder's fencing token must be larger than the one before.
#
#   tests/beside.sh OLD NEW        # two programs `crosslock`
#
# CROSSLOCK_TEST_REDIS_SERVER names another server program than redis-server, such as a valkey-server.
set -euo pipefail

[ $# = 2 ] || { sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 64; }
old=$(realpath "$1") new=$(realpath "$2")
rounds=100
directory=$(mktemp -d)
"${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}" --port 0 --unixsocket "$directory/redis" --save "" \
  >"$directory/redis.log" &
server=$!
trap 'kill "$server"; wait || true; rm -rf "$directory"' EXIT

fail() { printf '%s\n' "$*" >&2; exit 1; }

# Adds one to the number in the file "$0", and stores the token beside it.
# shellcheck disable=SC2016
increment='read -r number token <"$0" && [ "$CROSSLOCK_TOKEN" -gt "$token" ] && echo $((number + 1)) "$CROSSLOCK_TOKEN" >"$0"'

# count PROGRAM URL FILE
count() {
  local round
  for ((round = 0; round < rounds; round++)); do
    "$1" -q --url "$2" run counter -- sh -c "$increment" "$3" || fail "$1 on $2 failed in round $round"
  done
}

# sees HOLDER OTHER URL: the other version finds the lock taken, and gets it when the holder has ended.
sees() {
  # shellcheck disable=SC2016
  "$1" -q --url "$3" run seen -- sh -c 'echo >"$0" && sleep 2' "$directory/held" &
  local holder=$! taken=0
  until [ -e "$directory/held" ]; do sleep 0.05; done
  rm "$directory/held"
  "$2" -q --url "$3" test seen || taken=$?
  [ "$taken" = 1 ] || fail "on $3, $2 doesn't see that $1 holds the lock: status $taken"
  "$2" -q --url "$3" run -w 10s seen -- true || fail "on $3, $2 doesn't get the lock that $1 releases"
  wait "$holder"
}

until [ -S "$directory/redis" ]; do kill -0 "$server" || fail "the server ended"; sleep 0.05; done
for url in "file://$directory/locks" "unix://$directory/redis"; do
  counter=$directory/counter
  echo "0 0" >"$counter"
  counting=()
  for program in "$old" "$new" "$old" "$new"; do
    count "$program" "$url" "$counter" &
    counting+=($!)
  done
  for one in "${counting[@]}"; do wait "$one"; done
  read -r number _ <"$counter"
  [ "$number" = $((4 * rounds)) ] || fail "on $url, $number of $((4 * rounds)) increments were counted"
  sees "$old" "$new" "$url"
  sees "$new" "$old" "$url"
  echo "${url%%:*}: $number increments, none lost"
done
