#!/usr/bin/env bash
# Shows that the tests find a library that is broken. Each file of tests/mutants/ is a patch that breaks one thing. It is
# applied to a copy of the library, and there what the patch names must find it: simulated worlds, or a test.
#
#   ./tests/mutants.sh              # the library as it is, which must pass, and all mutants
#   ./tests/mutants.sh MUTANT...    # some of them; `none` is the library as it is
#   ./tests/mutants.sh --simulation # those that simulated worlds find
#   ./tests/mutants.sh --tests      # those that a test finds
#   ./tests/mutants.sh --check      # only whether each patch says what it must, and still applies
#
# docs/internals/testing.md says what a patch begins with, and when a mutant counts as found.
set -euo pipefail
cd "$(dirname "$0")/.."

patches="$PWD/tests/mutants"
work="${CARGO_TARGET_DIR:-$PWD/target}/mutants"
copy="$work/copy"

fail() { printf '%s\n' "$*" >&2; exit 1; }

# What a mutant's patch says in the line `# KEY: ...`.
says() { sed -n "s/^# $2: *//p;/^diff /q" "$patches/$1.patch"; }

# What finds a mutant, and looks at the library as it is.
finder_of() { if [ "$1" = none ] || [ -n "$(says "$1" simulation)" ]; then echo simulation; else echo test; fi; }

check_header() {
  local name="$1" breaks test
  breaks="$(says "$name" breaks)"
  [[ "$breaks" =~ ^(safety|promise)$ ]] || fail "$name.patch says neither that it breaks safety nor that it breaks a promise"
  [ "$(sed '/^diff /q' "$patches/$name.patch" | grep -cE '^# (simulation|test):')" = 1 ] || fail "$name.patch doesn't say what finds it, once"
  case "$(finder_of "$name")" in
    simulation)
      [[ "$(says "$name" simulation)" =~ ^((memory|redis|sentinel|cluster|quorum|etcd|zookeeper)( |$))+(messages)?$ ]] || fail "$name.patch names an engine that isn't simulated"
      ;;
    test)
      test="$(says "$name" test)"
      [[ "$test" =~ ^[a-z_]+\ [a-z0-9_:]+$ ]] || fail "$name.patch doesn't say which test of which target finds it"
      # A function, or a row of a table that a macro makes a function of.
      git grep -qE "^ *((pub.*)?fn )?${test##*[: ]}\(" -- src tests || fail "$name.patch names a test that isn't there: $test"
      ;;
  esac
}

check() {
  local name old=()
  for name in "$@"; do
    check_header "$name"
    git apply --check "$patches/$name.patch" || old+=("$name.patch")
  done
  [ ${#old[@]} -eq 0 ] || fail "they don't apply any more: ${old[*]}"
  echo "all $# patches apply"
}

# All files that git knows or would add. A file that is in the copy already, and the same, keeps its time, so that what cargo has
# built of it stands; the others have times that are later than those of any build.
copy_library() {
  local fresh="$work/fresh" file
  rm -rf "$fresh"
  mkdir -p "$fresh" "$copy"
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar --create --null --files-from=- | tar --extract --touch --directory="$fresh"
  (cd "$fresh" && find . -type f -print0) | while IFS= read -r -d '' file; do
    cmp --silent "$fresh/$file" "$copy/$file" || continue
    touch --reference="$copy/$file" "$fresh/$file"
  done
  rm -rf "$copy"
  mv "$fresh" "$copy"
}

# In the copy, git must not look for the repository around it.
patch_copy() { (cd "$copy" && GIT_CEILING_DIRECTORIES="$work" git apply "$@"); }

# Cargo, on the copy, for as long as $limit.
cargo_in_copy() {
  (cd "$copy" && CARGO_TARGET_DIR="$work/target" CARGO_PROFILE_DEV_DEBUG=0 timeout "${limit:-2h}" cargo "$1" --locked --quiet "${@:2}")
}

# A row of the table at the end: the mutant, whether it was found, by what, and in how many seconds.
rows=()
survivors=()
row() {
  rows+=("$(printf '%-30s %-8s %-9s %7d  %s' "$1" "$2" "$3" "$5" "$4")")
  [[ "$3" =~ ^(found|passes)$ ]] || survivors+=("$1")
  printf '%s\n' "${rows[-1]}"
}

# Simulated worlds in the copy, up to the first that breaks a promise; of all engines, or of those that are named. Behind them
# may stand `messages`, for scenes in the place of worlds.
simulate() {
  local log="$work/$1.txt" word words=()
  for word in "${@:2}"; do if [ "$word" = messages ]; then words+=(--messages); else words+=(--engine "$word"); fi; done
  timeout 10m "$work/target/simulation/simulate" --seconds 60 --first "${words[@]}" >> "$log" 2>&1 || echo "it failed" >> "$log"
}

# The seconds are those of the worlds alone.
simulate_mutant() {
  local name="$1" verdict=SURVIVES engines first
  read -ra engines <<< "$(says "$name" simulation)"
  patch_copy "$patches/$name.patch"
  if cargo_in_copy build --profile simulation -p crosslock-simulation > "$work/$name.txt" 2>&1; then
    SECONDS=0
    simulate "$name" "${engines[@]}"
  else
    verdict="NOT BUILT"
  fi
  patch_copy --reverse "$patches/$name.patch"
  first="$(sed -nE 's/^simulate .*: violation: //p' "$work/$name.txt" | head -1)"
  [ -z "$first" ] || verdict=found
  row "$name" "$(says "$name" breaks)" "$verdict" "simulation, ${engines[*]}: ${first:-nothing}" "$SECONDS"
}

# The library as it is: no world and no scene of it breaks a promise.
simulate_unbroken() {
  local verdict=fails
  SECONDS=0
  cargo_in_copy build --profile simulation -p crosslock-simulation > "$work/none.txt" 2>&1 && simulate none && simulate none messages
  grep -qE '^it failed|: violation: ' "$work/none.txt" || verdict=passes
  row "the library as it is" "" "$verdict" "simulation" "$SECONDS"
}

# Which engine a mutant breaks, and its test is about; nothing if it may be more than one.
engine_of() {
  local target test engine
  read -r target test <<< "$(says "$1" test)"
  case "$target $test" in
    redis_* | "lib engine::redis::"*) engine=redis ;;
    etcd* | "lib engine::etcd::"*) engine=etcd ;;
    zookeeper* | "lib engine::zookeeper::"*) engine=zookeeper ;;
    *) return ;;
  esac
  sed -n 's|^+++ b/||p' "$patches/$1.patch" | grep -qv "^src/engine/$engine/" || echo "$engine"
}

# How cargo is told of a target.
arguments_of() {
  case "$1" in
    lib) echo "-p crosslock --all-features --lib" ;;
    local_queue) echo "-p crosslock-local-queue --test local_queue" ;;
    cli) echo "-p crosslock-cli --test cli" ;;
    *) echo "-p crosslock-tests --all-features --test $1" ;;
  esac
}

# The servers that tests/run.sh has downloaded, if no others are named or in the path.
name_servers() {
  local dir
  dir="$(realpath "${CARGO_TARGET_DIR:-$PWD/target}")"
  command -v etcd >/dev/null || export CROSSLOCK_TEST_ETCD="${CROSSLOCK_TEST_ETCD:-$dir/etcd/etcd}"
  export CROSSLOCK_TEST_ZOOKEEPER="${CROSSLOCK_TEST_ZOOKEEPER:-$dir/zookeeper/jars}"
}

# Builds what tests of these mutants need, with all of them in the copy; then their tests one by one. The seconds are those of the
# test, and for the first one those of the build, too. A build that fails finds nothing, nor does a test that doesn't end, or
# that has no server.
test_mutants() {
  local name target test arguments verdict
  SECONDS=0
  for name in "$@"; do patch_copy "$patches/$name.patch"; done
  for name in "$@"; do
    read -r target test <<< "$(says "$name" test)"
    read -ra arguments <<< "$(arguments_of "$target")"
    verdict=SURVIVES
    if ! cargo_in_copy test "${arguments[@]}" --no-run > "$work/$name.txt" 2>&1; then
      verdict="NOT BUILT"
      cat "$work/$name.txt" >&2
    elif ! limit=10m cargo_in_copy test "${arguments[@]}" -- --exact "$test" >> "$work/$name.txt" 2>&1 &&
      grep -q '^test result: FAILED. 0 passed; 1 failed' "$work/$name.txt"; then
      verdict=found
      if grep -q 'not found: run ./tests/run.sh' "$work/$name.txt"; then verdict="NO SERVER"; fi
    fi
    row "$name" "$(says "$name" breaks)" "$verdict" "$target $test" "$SECONDS"
    SECONDS=0
  done
  for name in "$@"; do patch_copy --reverse "$patches/$name.patch"; done
}

# Mutants of different engines are in the copy at once, because the test of one engine runs no code of another: they are built once.
test_all() {
  local name engine of_redis=() of_etcd=() of_zookeeper=() together
  for name in "$@"; do
    engine="$(engine_of "$name")"
    case "$engine" in
      redis) of_redis+=("$name") ;;
      etcd) of_etcd+=("$name") ;;
      zookeeper) of_zookeeper+=("$name") ;;
      *) test_mutants "$name" ;;
    esac
  done
  for ((number = 0; number < $#; number++)); do
    together=("${of_redis[@]:number:1}" "${of_etcd[@]:number:1}" "${of_zookeeper[@]:number:1}")
    [ ${#together[@]} -eq 0 ] || test_mutants "${together[@]}"
  done
}

all=()
for patch in "$patches"/*.patch; do
  all+=("$(basename "$patch" .patch)")
done
if [ "${1:-}" = --check ]; then
  check "${all[@]}"
  exit
fi

chosen=("$@")
case "${1:-}" in
  "") chosen=(none "${all[@]}") ;;
  --simulation | --tests) chosen=("${all[@]}") ;;
esac
by_simulation=() by_test=()
for name in "${chosen[@]}"; do
  [ "$name" = none ] || [ -e "$patches/$name.patch" ] || fail "there is no mutant $name"
  case "${1:-} $(finder_of "$name")" in
    "--tests simulation" | "--simulation test") ;;
    *" simulation") by_simulation+=("$name") ;;
    # Those of the tests beside the code come first, and so together.
    *" test") if [[ "$(says "$name" test)" = lib\ * ]]; then by_test=("$name" "${by_test[@]}"); else by_test+=("$name"); fi ;;
  esac
done
check "${all[@]}"
name_servers
copy_library
for name in "${by_simulation[@]}"; do if [ "$name" = none ]; then simulate_unbroken; else simulate_mutant "$name"; fi; done
test_all "${by_test[@]}"
printf '\n%-30s %-8s %-9s %7s  %s\n' mutant breaks verdict seconds "by"
printf '%s\n' "${rows[@]}"
[ ${#survivors[@]} -eq 0 ] || fail "see $work: $(IFS=,; echo "${survivors[*]}")"
