#!/bin/sh
# Installs the Debian packages that a command of this project needs and that are missing.
#   tools/install-packages.sh run|test
# On a terminal it asks first; otherwise it goes straight on. Without root or sudo it prints the command and stops.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
case "${1:-}" in
run) wanted='run' ;;
test) wanted='run|test' ;;
*)
	echo "usage: tools/install-packages.sh run|test" >&2
	exit 64
	;;
esac

packages=$(awk -v wanted="^($wanted)$" '$1 ~ wanted {print $2}' "$here/packages.txt")

if ! command -v dpkg-query >/dev/null 2>&1; then
	echo "takt: this is no Debian; please install what these packages hold, then run this again with SKIP_PACKAGES=1:" >&2
	echo "$packages" | sed 's/^/  /' >&2
	[ -n "${SKIP_PACKAGES:-}" ] && exit 0
	exit 69
fi

missing=''
for package in $packages; do
	case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :) in
	installed) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -z "$missing" ] && exit 0

echo "takt: packages to install:$missing"
if [ "$(id -u)" -eq 0 ]; then
	sudo=''
elif command -v sudo >/dev/null 2>&1; then
	sudo='sudo'
else
	echo "takt: neither root nor sudo here. As root, run:" >&2
	echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
	exit 77
fi
if [ -t 0 ] && [ -t 1 ]; then
	printf 'Install them with apt-get? [Y/n] '
	read -r answer
	case $answer in
	'' | [Yy]*) ;;
	*) exit 77 ;;
	esac
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "takt: installing (a minute or two) ..."
# shellcheck disable=SC2086 # the list is words
if ! { $sudo apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive \
	apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "takt: apt-get failed; see above" >&2
	exit 69
fi
