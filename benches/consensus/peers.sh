#!/usr/bin/env bash
# Compares the locks of etcd's Go package and of Curator with crosslock's, on the same servers.
#
#   benches/consensus/peers.sh [CYCLES]
#
# Installs their packages of Debian, as root, if they are missing. CROSSLOCK_TEST_ETCD and CROSSLOCK_TEST_ZOOKEEPER name
# the servers, as for the bench itself.
set -euo pipefail
cd "$(dirname "$0")/../.."

peers="${CARGO_TARGET_DIR:-$PWD/target}/peers"
jars=/usr/share/java
classes="$peers"
for jar in curator-recipes curator-framework curator-client zookeeper zookeeper-jute netty-all guava slf4j-api; do
  classes="$classes:$jars/$jar.jar"
done
if ! [ -e "$jars/curator-recipes.jar" ] || ! [ -d /usr/share/gocode/src/go.etcd.io ] || ! command -v go javac >/dev/null; then
  ./tests/install.sh golang-go golang-etcd-server-dev libcurator-recipes-java default-jdk-headless
fi
mkdir -p "$peers"
GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE="$peers/cache" go build -o "$peers/concurrency" benches/consensus/peers/concurrency.go
javac -cp "$classes" -d "$peers" benches/consensus/peers/Curator.java
export CROSSLOCK_BENCH_GO="$peers/concurrency" CROSSLOCK_BENCH_CURATOR="java -cp $classes Curator"
cargo bench --locked -p crosslock-tests --features etcd,zookeeper --bench consensus -- "${1:-1500}"
