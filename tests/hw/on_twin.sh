#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/hw/run, packed and carried to a simulated machine: everything is written, and says simulated.
# Arguments: this folder, takt-twin, the twin's library.
set -eu

hw=$1 takt_twin=$2 library=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0

# check NAME COMMAND...
check() {
	number=$((number + 1))
	name=$1
	shift
	if "$@" >"$work/out" 2>&1; then echo "ok $number - $name"; else
		echo "not ok $number - $name"
		sed 's/^/# /' "$work/out"
	fi
}

every_file_says_simulated() {
	for file in status topology latency paced energy gpm; do
		grep -q '^.*simulated: nothing here was measured' "$work/results/$file.txt"
	done
	grep -q '^info simulated 1$' "$work/results/recording.txt"
}

every_call_was_timed() {
	grep -Eq '^power +0 ' "$work/results/latency.txt"
	[ "$(grep -c '^compute processes ' "$work/results/latency.txt")" -eq 2 ]
}


recording_names_nobody() {
	! grep -Eq 'GPU-[1-9a-f]' "$work/results/recording.txt"
	[ "$(grep -c '^sample ' "$work/results/recording.txt")" -eq 20 ]
}

refuses_nonsense() {
	! "$work/pack/run" --seconds many
}

echo 1..6
TAKT_TWIN=$work/machine.twin
export TAKT_TWIN
"$takt_twin" create hgx-h100 --gpus 2 --path "$TAKT_TWIN" >/dev/null
LD_LIBRARY_PATH=$(dirname "$library")
export LD_LIBRARY_PATH

check 'packs itself' sh "$hw/run" --pack "$work/pack"
check 'runs from the pack' "$work/pack/run" --seconds 1 "$work/results"
check 'every file says simulated' every_file_says_simulated
check 'every call was timed on both GPUs' every_call_was_timed
check 'the recording names nobody and has every sample' recording_names_nobody
check 'refuses nonsense' refuses_nonsense
