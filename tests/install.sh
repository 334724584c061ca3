#!/bin/sh
# Installs packages of Debian as root, and starts none of the services that they bring. `tests/run.sh` runs it.
#
#   ./tests/install.sh PACKAGE...
#
# Debian asks /usr/sbin/policy-rc.d before it starts a service. While this script runs there is one that forbids all.
# If the machine has one of its own, that one stays, and decides.
set -eu

policy=/usr/sbin/policy-rc.d
made_here='Made by tests/install.sh of crosslock, which removes it when the packages are installed.'

# One run at a time, so that none removes the policy of another.
exec 9<"$(dirname "$policy")"
flock 9

# An earlier run that was killed may have left its policy.
if { [ -e "$policy" ] || [ -L "$policy" ]; } && ! grep -qsF "$made_here" "$policy"; then
  echo "== $policy is there already: it decides which services start"
else
  trap 'rm -f "$policy"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  printf '#!/bin/sh\n# %s\nexit 101\n' "$made_here" >"$policy"
  chmod 755 "$policy"
fi

apt-get update -qq 9<&-
# One by one: where one can't be had, the others still can.
status=0
for package; do
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" 9<&- || status=$?
done
exit "$status"
