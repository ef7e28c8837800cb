#!/usr/bin/env bash
# Makes everything in docs/ again that the program makes: the table and the picture of accuracy, the books' figures, the
# pictures of reports, schedules and the gallery, what commands of the pages print, and the notebook's outputs.
#
#   scripts/refresh_docs.sh [BUILD-FOLDER]    build/release
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build/release}")
stepsim=$build/stepsim
scripts/generate_accuracy_docs.py "$stepsim" --write
if ! git diff --quiet catalog/predictions && [[ catalog/predictions/step_times.csv -nt $stepsim ]]; then
  echo "$0: the points of the picture of accuracy have changed; build stepsim, then run this again" >&2
  exit 1
fi
rm -f docs/figures/*.svg docs/schedules/*.svg
"$stepsim" figures --out docs/figures >/dev/null
scripts/draw_report.py "$stepsim"
scripts/draw_schedules.py "$stepsim"
scripts/draw_gallery.py "$stepsim"
scripts/run_pages.py "$stepsim" --write
PYTHONPATH=$build/python /usr/bin/python3 -B scripts/run_notebook.py docs/tutorial.ipynb --write
git status --short docs README.md
