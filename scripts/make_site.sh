#!/usr/bin/env bash
# Makes the site: the written pages of docs/ and what the program says of itself (commands, keys and fields, formulas, studies,
# experiments, accuracy table by table), by Debian's mkdocs and mkdocs-material. Nothing is loaded from elsewhere.
#
#   scripts/make_site.sh [STEPSIM [FOLDER]]            build/release/stepsim, out/site; some minutes
#   scripts/make_site.sh --quick [STEPSIM [FOLDER]]    few studies and tables; seconds
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
studies=() tables=()
if [[ ${1:-} == --quick ]]; then
  shift
  studies=(S1 S15) tables=(matmuls collectives)
fi
stepsim=$(realpath "${1:-$root/build/release/stepsim}")
site=$(realpath --canonicalize-missing "${2:-$root/out/site}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pages=$work/docs
cp -r "$root/docs" "$pages"
cd "$root"

scripts/generate_command_docs.py "$stepsim" "$pages"
scripts/generate_field_docs.py "$stepsim" "$pages"
scripts/generate_formula_docs.py "$stepsim" "$pages"
scripts/generate_validation_docs.py "$stepsim" "$pages" "${studies[@]}"
scripts/generate_catalog_docs.py "$stepsim" "$pages" 2>/dev/null
scripts/generate_accuracy_docs.py "$stepsim" "$pages" "${tables[@]}"
scripts/draw_gallery.py --page "$pages"
/usr/bin/python3 scripts/run_notebook.py docs/tutorial.ipynb --page "$pages"
scripts/link_commands.py "$pages"

cat >"$work/mkdocs.yml" <<END
INHERIT: $root/mkdocs.yml
docs_dir: $pages
site_dir: $site
theme:
  custom_dir: $root/scripts/site
END
if ! mkdocs build --strict --clean --config-file "$work/mkdocs.yml" >"$work/log" 2>&1; then
  grep -v '^INFO\|^  ' "$work/log" >&2
  exit 1
fi
# What scripts/site/main.html reads where the site is opened as a file.
(echo -n "search_index_is("; cat "$site/search/search_index.json"; echo ");") >"$site/search/search_index.js"
