#!/usr/bin/env bash
# Installs what the tests need and is missing, and runs all of them; with arguments, those that they name.
#
#   ./tests/run.sh [arguments of `cargo test`]
#
# CROSSLOCK_TEST_REDIS_SERVER names another server program to test against, such as a valkey-server. One that is
# built without TLS fails the tests of TLS.
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

command -v cargo >/dev/null || { say "cargo isn't there: install Rust 1.89 or later from https://rustup.rs" >&2; exit 1; }
command -v "${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}" >/dev/null || install_redis

# Their tests run the program, which cargo builds for those of its own package.
case " $* " in
  *" --test cli "*|*" --test torture "*) set -- --test program "$@" ;;
esac

say "testing with $("${CROSSLOCK_TEST_REDIS_SERVER:-redis-server}" --version)"
cargo test --locked --workspace --all-features "$@"
