#!/usr/bin/env bash
# Shows that the torture program finds a library that is broken: builds one mutant after the other, and expects of
# each a violation of one of the rules that it breaks. What is broken is what `cfg(crosslock_mutant)` marks in src/.
#
#   ./tests/mutants.sh [mutant...]
set -euo pipefail
cd "$(dirname "$0")/.."

# name / seconds / class / the rules that it breaks / the faults that show it; none at all is the library as it is.
mutants() {
  cat <<'END'
none                  / 12 / both   /             / stop holder past ttl,lose reply to acquire,flushall
release_any_owner     / 12 / safe   / C1|C6       / stop holder past ttl
validity_from_reply   / 15 / safe   / C1          / delay and kill holder
validity_ignored      / 12 / safe   / C1          / stop holder past ttl
renewal_recreates     / 16 / unsafe / C1|C6       / delete lock,flushall
refusal_ignored       / 36 / unsafe / C1          / delete lock,flushall
connection_reused     / 12 / safe   / C1|C3|C4|C6|C8 / delay,stop server,lose reply to acquire
new_owner_on_retry    / 10 / safe   / C4|C5|C7    / script flush
token_not_counted     / 10 / safe   / C3          / script flush
heartbeat_loses_place / 12 / safe   / C6          / script flush
queue_without_ttl     / 8  / safe   / C5          / script flush
dead_are_served       / 12 / safe   / C4|C7       / kill waiter
timeout_ignored       / 8  / safe   / C7          / script flush
panic_keeps           / 8  / safe   / C4|C6       / script flush
grant_unchecked       / 20 / safe   / C1|C3       / stop waiter and delay grants
dead_stay_in_line     / 12 / safe   / C6          / kill waiter
renewer_not_needed    / 12 / safe   / C4|C9       / threads exhausted
reader_beside_writer  / 10 / safe   / C1          / script flush
permits_not_counted   / 10 / safe   / C1          / script flush
stores_without_owner  / 30 / unsafe / C2          / delete lock
dead_reader_renewed   / 24 / safe   / C6          / kill holder
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
    cargo test --locked --quiet --all-features --test torture > "$target/mutants/$name.txt" 2>&1
}

while IFS=/ read -r name seconds class rules faults; do
  read -r name <<< "$name"; read -r seconds <<< "$seconds"; read -r class <<< "$class"; read -r rules <<< "$rules"
  faults="${faults# }"
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  if [ "$name" = none ]; then
    run "$name" "$seconds" "$class" "$faults" "" && echo "== the library as it is: passes" ||
      { echo "== the library as it is: fails"; survivors+=("$name"); }
    continue
  fi
  run "$name" "$seconds" "$class" "$faults" " --cfg crosslock_mutant --cfg 'crosslock_mutant=\"$name\"'" || true
  found="$(grep -oE '^C[0-9]:' "$target/mutants/$name.txt" | sort | uniq -c | tr -s ' \n' ' ' || true)"
  if grep -qE "^($rules):" "$target/mutants/$name.txt"; then
    echo "== $name: caught ($found)"
  else
    echo "== $name: SURVIVES ($found)"
    # It may not even have run.
    grep -E '^error|^no script has|didn.t|panicked' "$target/mutants/$name.txt" | head -5 || true
    survivors+=("$name")
  fi
done < <(mutants)

if [ ${#survivors[@]} -gt 0 ]; then
  echo "see $target/mutants: ${survivors[*]}"
  exit 1
fi
