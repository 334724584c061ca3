#!/usr/bin/env bash
# Compares the lateness and the rescue of BullMQ's and arq's delayed tasks with crosslock's, on one server each.
#
#   benches/delay_peers/run.sh [TASKS]
#
# Installs their packages from npm and PyPI into the target directory. Each has TASKS (2,000) tasks, of which a thousand
# are due a second, and four worker processes with default settings: one task at a time, arq ten. Then a worker is killed
# that has a task, while another waits: if that has the task within 100 s, the time is printed. crosslock's rows are those
# of `cargo bench --bench delay`, whose ttl is 1 s instead of 10 s.
set -euo pipefail
cd "$(dirname "$0")/../.."

tasks="${1:-2000}"
packages="${CARGO_TARGET_DIR:-$PWD/target}/delay_peers"
mkdir -p "$packages"
[ -d "$packages/node_modules/bullmq" ] || npm install --silent --no-fund --no-audit --prefix "$packages" bullmq@5
[ -d "$packages/arq" ] || python3 -m pip install --quiet --target "$packages" 'arq<1'
cp benches/delay_peers/bullmq.mjs "$packages"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis-server --port "$port" --save '' --appendonly no --daemonize no >/dev/null &
server=$!
trap 'kill "$server"' EXIT
until redis-cli -p "$port" ping >/dev/null 2>&1; do sleep 0.1; done

export PYTHONPATH="$packages"
python3 benches/delay_peers/measure.py "$port" "$tasks" BullMQ node "$packages/bullmq.mjs"
python3 benches/delay_peers/measure.py "$port" "$tasks" arq python3 benches/delay_peers/arq_peer.py
cargo bench --locked --features delay --bench delay -- "$tasks" --rounds 3
