#!/usr/bin/env bash
# Puts the shared libraries that a program or module needs into a folder, with their copyrights, so that
# it runs where they are not installed: bundle_libraries.sh FILE FOLDER. Those of the C and C++ runtime
# are expected everywhere.
set -euo pipefail
file=$1
folder=$2
mkdir -p "$folder"
ldd "$file" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | while read -r library; do
  case $(basename "$library") in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | libstdc++.so.* | libgcc_s.so.*) continue ;;
  esac
  cp --dereference "$library" "$folder/"
  chmod 644 "$folder/$(basename "$library")"
  real=$(readlink --canonicalize "$library")
  package=$(dpkg-query --search "$real" "${real#/usr}" 2>/dev/null | head -1 | cut -d: -f1) || true
  copyright=/usr/share/doc/$package/copyright
  [[ -z $package || ! -f $copyright ]] || cp --dereference "$copyright" "$folder/$package.copyright"
done
