#!/usr/bin/env bash
# Writes the man pages and completions of stepsim: write_pages.sh STEPSIM FOLDER.
set -euo pipefail
stepsim=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder/man1"
"$stepsim" help man | gzip --no-name --best >"$folder/man1/stepsim.1.gz"
for name in $("$stepsim" help | sed -n '/^Usage:$/,/^$/s/^  stepsim \([a-z][a-z-]*\).*/\1/p'); do
  "$stepsim" help man "$name" | gzip --no-name --best >"$folder/man1/stepsim-$name.1.gz"
done
for shell in bash zsh; do "$stepsim" help completion "$shell" >"$folder/stepsim.$shell"; done
