#!/usr/bin/env bash
# Shows that the torture program finds a library that is broken. Each file of tests/mutants/ is a patch that breaks one
# thing. It is applied to a copy of the library, and the torture program must find there what the patch says, or the test
# must fail that the patch names.
#
#   ./tests/mutants.sh              # the library as it is, which must pass, and all mutants
#   ./tests/mutants.sh MUTANT...    # some of them; `none` is the library as it is
#   ./tests/mutants.sh --check      # only whether each patch says what it must, and still applies
#
# docs/testing.md says what a patch begins with, and when a mutant counts as found.
set -euo pipefail
cd "$(dirname "$0")/.."

patches="$PWD/tests/mutants"
work="${CARGO_TARGET_DIR:-$PWD/target}/mutants"
copy="$work/copy"

fail() { printf '%s\n' "$*" >&2; exit 1; }

# What a mutant's patch says in the line `# KEY: ...`.
says() { sed -n "s/^# $2: *//p;/^diff /q" "$patches/$1.patch"; }

check_header() {
  local name="$1" breaks rules test
  breaks="$(says "$name" breaks)" rules="$(says "$name" rules)" test="$(says "$name" test)"
  if [ -n "$test" ]; then
    [[ "$breaks" =~ ^(safety|promise)$ ]] || fail "$name.patch says neither that it breaks safety nor that it breaks a promise"
    [[ "$test" =~ ^[a-z_]+\ [a-z0-9_:]+$ ]] || fail "$name.patch doesn't say which test of which target finds it"
    git grep -qw "fn ${test##*:}()" -- src tests || fail "$name.patch names a test that isn't there: $test"
    return
  fi
  [[ "$rules" =~ ^C[1-9]0?(\ C[1-9]0?)*$ ]] || fail "$name.patch doesn't say by which rules it is found"
  [[ "$(says "$name" seconds)" =~ ^[0-9]+$ ]] || fail "$name.patch doesn't say for how many seconds it runs"
  [[ "$(says "$name" class)" =~ ^(safe|unsafe)$ ]] || fail "$name.patch doesn't say which class of faults it runs with"
  [[ "$(says "$name" topology)" =~ ^(|replicas|sentinel|cluster|etcd|zookeeper)$ ]] || fail "$name.patch doesn't say which servers it runs against"
  [ -n "$(says "$name" faults)" ] || fail "$name.patch doesn't say which faults show it"
  case "$breaks" in
    safety) [[ "$rules" != *C[4789]* ]] || fail "$name.patch breaks safety: that $rules find it isn't enough" ;;
    promise) ;;
    *) fail "$name.patch says neither that it breaks safety nor that it breaks a promise" ;;
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

# All files that git knows or would add, with times that are later than those of any build.
copy_library() {
  rm -rf "$copy"
  mkdir -p "$copy"
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    tar --create --null --files-from=- | tar --extract --touch --directory="$copy"
}

# In the copy, git must not look for the repository around it.
patch_copy() { (cd "$copy" && GIT_CEILING_DIRECTORIES="$work" git apply "$@"); }

# The torture program in the copy. A build that fails is no violation.
run() {
  local name="$1" seconds="$2" class="$3" faults="$4" log="$work/$1.txt" topology="${5:-single}"
  (
    cd "$copy"
    export CARGO_TARGET_DIR="$work/target" CARGO_PROFILE_DEV_DEBUG=0
    # With the program that it runs, which cargo builds for tests of its own package.
    torture=(cargo test --locked --quiet -p crosslock-cli -p crosslock-torture --test program --test torture)
    "${torture[@]}" --no-run > "$log" 2>&1 || { cat "$log" >&2; fail "$name can't be built"; }
    TORTURE_SECONDS="$seconds" TORTURE_CLASS="$class" TORTURE_FAULTS="$faults" TORTURE_TOPOLOGY="$topology" \
      "${torture[@]}" >> "$log" 2>&1 ||
      echo "it failed" >> "$log"
  )
}

# The test in the copy that a patch names. A build that fails doesn't find it.
test_mutant() {
  local name="$1" target test log="$work/$1.txt"
  read -r target test <<< "$(says "$name" test)"
  (
    cd "$copy"
    export CARGO_TARGET_DIR="$work/target" CARGO_PROFILE_DEV_DEBUG=0
    case "$target" in
      lib) tests=(cargo test --locked --quiet -p crosslock --all-features --lib) ;;
      local_queue) tests=(cargo test --locked --quiet -p crosslock-local-queue) ;;
      *) tests=(cargo test --locked --quiet -p crosslock-tests --all-features --test "$target") ;;
    esac
    "${tests[@]}" --no-run > "$log" 2>&1 || { cat "$log" >&2; fail "$name can't be built"; }
    ! "${tests[@]}" -- --exact "$test" >> "$log" 2>&1 && grep -q '^test result: FAILED. 0 passed; 1 failed' "$log"
  )
}

# Whether a mutant was found by one of its rules. A queue that changes its order breaks no safety.
found() {
  local violations
  violations="^($(says "$1" rules | tr ' ' '|')): "
  if [ "$(says "$1" breaks)" = safety ]; then
    grep -E "$violations" "$work/$1.txt" | grep -qvE '^C6: the (line|queue) of .* has changed its order'
  else
    grep -qE "$violations" "$work/$1.txt"
  fi
}

run_unbroken() {
  if run none 12 both "stop holder past ttl,lose reply to acquire,flushall" && ! grep -qx "it failed" "$work/none.txt"; then
    echo "== the library as it is: passes"
  else
    echo "== the library as it is: fails"
    return 1
  fi
}

run_mutant() {
  local name="$1" counts verdict=found
  patch_copy "$patches/$name.patch" || fail "$name.patch doesn't apply to the copy"
  if [ -n "$(says "$name" test)" ]; then
    test_mutant "$name" || verdict=SURVIVES
    patch_copy --reverse "$patches/$name.patch" || fail "$name.patch can't be taken back"
    echo "== $name, which breaks $(says "$name" breaks): $verdict by $(says "$name" test)"
    [ "$verdict" = found ]
    return
  fi
  run "$name" "$(says "$name" seconds)" "$(says "$name" class)" "$(says "$name" faults)" "$(says "$name" topology)"
  patch_copy --reverse "$patches/$name.patch" || fail "$name.patch can't be taken back"
  counts="$(sed -nE 's/^\| violations of (C[0-9]+) \| ([0-9]+) \|$/\1 \2 times/p' "$work/$name.txt")"
  counts="${counts:-nothing}"
  found "$name" || verdict=SURVIVES
  echo "== $name, which breaks $(says "$name" breaks): $verdict by $(says "$name" rules) (in all: ${counts//$'\n'/, })"
  if [ "$verdict" = SURVIVES ]; then
    # It may have ended before its time.
    grep -E 'panicked|didn.t' "$work/$name.txt" | head -5 || true
    return 1
  fi
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
[ $# -gt 0 ] || chosen=(none "${all[@]}")
for name in "${chosen[@]}"; do
  [ "$name" = none ] || [ -e "$patches/$name.patch" ] || fail "there is no mutant $name"
done
check "${all[@]}"
copy_library
survivors=()
for name in "${chosen[@]}"; do
  if [ "$name" = none ]; then
    run_unbroken || survivors+=("the library as it is")
  else
    run_mutant "$name" || survivors+=("$name")
  fi
done
rm -rf "$copy"
[ ${#survivors[@]} -eq 0 ] || fail "see $work: $(IFS=,; echo "${survivors[*]}")"
