#!/usr/bin/env bash
# Shows that the torture program finds a library that is broken: builds one mutant after the other, and expects of
# each a violation of one of the rules that it breaks. What is broken is what `cfg(crosslock_mutant)` marks in src/.
#
#   ./tests/mutants.sh [mutant...]
#
# A mutant that breaks safety has to be found by a rule that no late process excuses: two that hold, tokens, values,
# keys without a ttl, locks that are taken from their owner (C1, C2, C3, C5, C6 but for the order of a line). That
# something took too long, was lost or failed besides (C4, C7, C8) isn't enough.
set -euo pipefail
cd "$(dirname "$0")/.."

# name / seconds / class / what it breaks / the rules that may find it / the faults that show it; none at all is the
# library as it is.
mutants() {
  cat <<'END'
none                  / 12 / both   / nothing /             / stop holder past ttl,lose reply to acquire,flushall
release_any_owner     / 12 / safe   / safety  / C1|C6       / stop holder past ttl
validity_from_reply   / 15 / safe   / safety  / C1          / delay and kill holder
validity_ignored      / 12 / safe   / safety  / C1          / stop holder past ttl
renewal_recreates     / 16 / unsafe / safety  / C1|C6       / delete lock,flushall
refusal_ignored       / 36 / unsafe / safety  / C1          / delete lock,flushall
connection_reused     / 12 / safe   / safety  / C1|C3|C6    / delay,stop server,lose reply to acquire
new_owner_on_retry    / 10 / safe   / promise / C4|C5|C7    / script flush
token_not_counted     / 10 / safe   / safety  / C3          / script flush
heartbeat_loses_place / 12 / safe   / promise / C6          / script flush
queue_without_ttl     / 8  / safe   / safety  / C5          / script flush
dead_are_served       / 12 / safe   / promise / C4|C7       / kill waiter
timeout_ignored       / 8  / safe   / promise / C7          / script flush
panic_keeps           / 8  / safe   / promise / C7       / script flush
grant_unchecked       / 20 / safe   / safety  / C1|C3       / stop waiter and delay grants
dead_stay_in_line     / 12 / safe   / promise / C6          / kill waiter
renewer_not_needed    / 12 / safe   / promise / C4|C9       / threads exhausted
reader_beside_writer  / 10 / safe   / safety  / C1          / script flush
permits_not_counted   / 10 / safe   / safety  / C1          / script flush
stores_without_owner  / 30 / unsafe / safety  / C2          / delete lock
dead_reader_renewed   / 24 / safe   / safety  / C6          / kill holder
END
}

# The cfgs that Cargo.toml allows are those of the list, and each is used.
for name in $(grep -o 'values(none(), [^)]*' Cargo.toml | grep -oE '"[a-z_]+"' | tr -d '"'); do
  mutants | grep -q "^$name " || { echo "$name isn't in the list of $0"; exit 1; }
  grep -rqF "crosslock_mutant = \"$name\"" src || { echo "$name changes nothing in src/"; exit 1; }
done

target="${CARGO_TARGET_DIR:-$PWD/target}"
mkdir -p "$target/mutants"
survivors=()

# Builds with a wrapper of its own, so that only this crate is built again.
run() {
  local name="$1" seconds="$2" class="$3" faults="$4" wrapper="$target/mutants/$1"
  printf '#!/bin/sh\nexec "$@"%s\n' "$5" > "$wrapper"
  chmod +x "$wrapper"
  RUSTC_WORKSPACE_WRAPPER="$wrapper" TORTURE_SECONDS="$seconds" TORTURE_CLASS="$class" TORTURE_FAULTS="$faults" \
    cargo test --locked --quiet -p crosslock-torture --test torture > "$target/mutants/$name.txt" 2>&1
}

# Whether a mutant, which breaks that, was found by one of these rules. A line that changes its order breaks no safety.
found_by() {
  local violations="^($3): "
  if [ "$2" = safety ]; then
    grep -E "$violations" "$target/mutants/$1.txt" | grep -qvE '^C6: the line of .* has changed its order'
  else
    grep -qE "$violations" "$target/mutants/$1.txt"
  fi
}

while IFS=/ read -r name seconds class breaks rules faults; do
  read -r name <<< "$name"; read -r seconds <<< "$seconds"; read -r class <<< "$class"
  read -r breaks <<< "$breaks"; read -r rules <<< "$rules"
  faults="${faults# }"
  if [ "$breaks" = safety ] && [[ "$rules" == *C[4789]* ]]; then
    echo "$name breaks safety: that $rules find it isn't enough"; exit 1
  fi
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  if [ "$name" = none ]; then
    run "$name" "$seconds" "$class" "$faults" "" && echo "== the library as it is: passes" ||
      { echo "== the library as it is: fails"; survivors+=("$name"); }
    continue
  fi
  run "$name" "$seconds" "$class" "$faults" " --cfg crosslock_mutant --cfg 'crosslock_mutant=\"$name\"'" || true
  counts="$(sed -nE 's/^\| violations of (C[0-9]) \| ([0-9]+) \|$/\1 \2 times/p' "$target/mutants/$name.txt")"
  counts="${counts:-nothing}"
  if found_by "$name" "$breaks" "$rules"; then
    echo "== $name, which breaks ${breaks/promise/a promise}: found by $rules (in all: ${counts//$'\n'/, })"
  else
    echo "== $name, which breaks ${breaks/promise/a promise}: SURVIVES $rules (in all: ${counts//$'\n'/, })"
    # It may not even have run.
    grep -E '^error|^no script has|didn.t|panicked' "$target/mutants/$name.txt" | head -5 || true
    survivors+=("$name")
  fi
done < <(mutants)

if [ ${#survivors[@]} -gt 0 ]; then
  echo "see $target/mutants: ${survivors[*]}"
  exit 1
fi
