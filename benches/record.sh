#!/usr/bin/env bash
# Installs redis-server, etcd, ZooKeeper, Curator, Go and a JDK with apt-get, which needs root, and two Python packages.
#
#   benches/record.sh [--seconds S] [--rounds N] [--measures MEASURE...] [--append] [--output FILE]
#
# Then it runs crosslock and other locks in turns, and writes benches/record/DATE.jsonl. 2 cores need up to 30 minutes.
# `--seconds 0.5 --rounds 1` takes five, and shows that all works. A lock that fails is left out, and the status is 1.
# `--measures late waiting --append` measures these alone, and adds the run to the record of the day.
# benches/report.py then makes the tables and the pictures.
#
# On a terminal it asks before it installs packages. Programs and Python packages go to the target directory.
# It needs Debian, Python 3.11 and Rust.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '== %s\n' "$1" >&2; }

target="${CARGO_TARGET_DIR:-$PWD/target}" jars=/usr/share/java
built="$target/record"
mkdir -p "$built"

install_packages() {
  local packages=(redis-server etcd-server libcurator-recipes-java golang-go golang-etcd-server-dev)
  packages+=(default-jdk-headless libzookeeper-java libdropwizard-metrics-java libsnappy-java util-linux)
  python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
  dpkg --status "${packages[@]}" >/dev/null 2>&1 && return
  if [ -z "${CI:-}" ] && [ -t 0 ]; then
    printf '== install %s, as root? [y/N] ' "${packages[*]}" >/dev/tty
    read -r answer
    [[ $answer == [yY]* ]] || exit 1
  fi
  local root=()
  [ "$(id -u)" = 0 ] || root=(sudo)
  say "installing ${packages[*]}"
  "${root[@]}" ./tests/install.sh "${packages[@]}" >&2
}

build_programs() {
  say "building crosslock, and the locks of Rust"
  cargo build --quiet --locked --release -p crosslock-cli
  cargo build --quiet --locked --release --manifest-path benches/peers/Cargo.toml --target-dir "$target"
  say "building the locks of Go, Java and Python"
  GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE="$built/cache" \
    go build -o "$built/concurrency" benches/consensus/peers/concurrency.go
  javac -cp "$RECORD_JARS" -d "$built" benches/consensus/peers/Curator.java
  [ -d "$built/python" ] || install_python_packages
}

install_python_packages() {
  rm -rf "$built/new"
  python3 -m pip install --quiet --target "$built/new" python-redis-lock==4.0.1 kazoo==2.11.0
  mv "$built/new" "$built/python"
}

install_packages
RECORD_JARS="$built"
for jar in curator-{recipes,framework,client} zookeeper zookeeper-jute guava slf4j-api metrics-core snappy-java \
  netty-{buffer,codec,common,handler,resolver,transport,transport-native-epoll,transport-native-unix-common}; do
  RECORD_JARS="$RECORD_JARS:$jars/$jar.jar"
done
RECORD_ETCD="$(command -v "${CROSSLOCK_TEST_ETCD:-etcd}")"
export RECORD_JARS RECORD_ETCD
build_programs
export RECORD_PEERS="$target/release/crosslock-peers" RECORD_GO="$built/concurrency"
export CROSSLOCK_PROGRAM="$target/release/crosslock" PYTHONPATH="$built/python"
export RECORD_LOG="$built/workers.log"
say "measuring"
exec python3 benches/compare/measure.py "$@"
