#!/usr/bin/env bash
# Installs a build and uses what was installed as an outside project does.
#
#   check.sh CHECK    one of the functions check_* below; CMakeLists.txt says which and sets:
#     WEIR_BUILD, WEIR_SOURCE   the build and source directories
#     WEIR_SCRATCH              a directory of these checks alone
#     WEIR_LIBDIR               CMAKE_INSTALL_LIBDIR of the build
#     WEIR_VERSION, CMAKE, CPACK, CXX
#     WEIR_CUDA_INCLUDE         the toolkit's headers; empty in a build without CUDA
# shellcheck disable=SC2016  # backticks of pages stand in single quotes
set -euo pipefail

installed=$WEIR_SCRATCH/installed
consumer=$WEIR_SOURCE/tests/package/consumer
expected="weir $WEIR_VERSION: 16 batches, sum 16777216"

fail() {
  echo "$*" >&2
  exit 1
}

# Fails unless the command given as "$@" prints the consumer's one line.
expect_sum() {
  local printed
  printed=$("$@")
  [[ $printed == "$expected" ]] || fail "'$*' printed '$printed', not '$expected'"
}

# Fails unless each path in "${@:2}" is there under $1.
expect_files() {
  local root=$1 path
  for path in "${@:2}"; do
    [[ -e $root/$path ]] || fail "there is no $path among: $(cd "$root" && find . -type f)"
  done
}

# What users ask for; the headers beyond these are those that these include.
expected_files() {
  local libdir=$1 header page
  echo bin/weir
  echo bin/weir-train
  echo "$libdir/libweir-core.so"
  echo "$libdir/libweir-core.so.${WEIR_VERSION%.*}"
  echo "$libdir/libweir-core.so.$WEIR_VERSION"
  echo "$libdir/cmake/Weir/WeirConfig.cmake"
  echo "$libdir/cmake/Weir/WeirConfigVersion.cmake"
  echo "$libdir/cmake/Weir/WeirTargets.cmake"
  echo "$libdir/pkgconfig/weir.pc"
  echo include/weir/cuda_resource.hpp
  echo include/weir/weir.h
  echo "$libdir/weir/weir/__init__.py"
  echo share/doc/weir/LICENSE
  echo share/doc/weir/README.md
  echo share/doc/weir/CHANGELOG.md
  echo share/doc/weir/docs/using-the-library.md
  echo share/doc/weir/docs/pictures/throttling.svg
  echo share/doc/weir/docs/pictures/timeline_throttled.png
  echo share/doc/weir/docs/results/README.md
  echo share/weir/snapshot_to_csv.py
  echo share/weir/tools/torch/build
  for page in weir weir-run weir-timeline weir-train weir-train-compare; do
    echo "share/man/man1/$page.1.gz"
  done
  echo share/bash-completion/completions/weir
  echo share/bash-completion/completions/weir-train
  (cd "$WEIR_SOURCE" && printf 'share/doc/weir/%s\n' docs/schemas/*.schema.json)
  for header in $(public_headers); do
    echo "include/weir/$header"
  done
}

public_headers() {
  local headers
  headers=$(cd "$WEIR_SOURCE" && grep -rlx '/// @file' --include='*.hpp' --include='*.hpp.in' allocator scheduler |
    sed 's/\.in$//')
  [[ -n $headers ]] || fail "no header has the line '/// @file'"
  # Those that need CUDA are installed by a build that has it.
  if [[ -z $WEIR_CUDA_INCLUDE ]]; then
    headers=$(grep -v '_cuda\.hpp$' <<<"$headers")
  fi
  echo "$headers"
}

# Configures and builds the consumer against the tree $1, in the scratch directory $2.
build_consumer() {
  local tree=$1 build=$WEIR_SCRATCH/$2
  rm -rf "$build"
  "$CMAKE" -S "$consumer" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" -DCMAKE_PREFIX_PATH="$tree" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF >"$build.log" 2>&1 || fail "$(cat "$build.log")"
  "$CMAKE" --build "$build" >"$build.log" 2>&1 || fail "$(cat "$build.log")"
  grep -q "^Weir_DIR:PATH=$tree/" "$build/CMakeCache.txt" ||
    fail "the consumer took another Weir: $(grep '^Weir_DIR' "$build/CMakeCache.txt")"
}

check_install() {
  local found
  rm -rf "$WEIR_SCRATCH"
  mkdir -p "$WEIR_SCRATCH"
  "$CMAKE" --install "$WEIR_BUILD" --prefix "$installed" >"$WEIR_SCRATCH/install.log"
  mapfile -t files < <(expected_files "$WEIR_LIBDIR")
  expect_files "$installed" "${files[@]}"
  [[ $("$installed/bin/weir-train" --version) == "weir-train $WEIR_VERSION" ]] ||
    fail "the installed weir-train does not tell its version, $WEIR_VERSION"
  # Neither the source tree nor the build may be needed afterwards.
  found=$(grep -rlF -e "$WEIR_BUILD" -e "$WEIR_SOURCE" "$installed"/{include,"$WEIR_LIBDIR"/cmake,"$WEIR_LIBDIR"/pkgconfig} || true)
  [[ -z $found ]] || fail "these name the tree that they were built in: $found"
  # A program that has a CUDA runtime of its own must not get the one inside.
  found=$(nm -D --defined-only "$installed/$WEIR_LIBDIR/libweir-core.so" | grep -E ' (cuda|cu|__cuda)[A-Z]' || true)
  [[ -z $found ]] || fail "libweir-core exports names of the CUDA runtime: $found"
}

check_find_package() {
  local page
  build_consumer "$installed" consumer
  expect_sum "$WEIR_SCRATCH/consumer/consumer"
  for page in using-the-library newcomer; do
    grep -qxF "$expected" "$WEIR_SOURCE/docs/$page.md" || fail "docs/$page.md does not say: $expected"
  done
}

# Writes the one C++ block of README.md to the file $1.
readme_program() {
  local page=$WEIR_SOURCE/README.md
  [[ $(grep -cx '```cpp' "$page") == 1 ]] || fail "README.md has not one C++ block"
  sed -n '/^```cpp$/,/^```$/{/^```/!p}' "$page" >"$1"
  (($(wc -l <"$1") > 5)) || fail "README.md has no C++ program: $(cat "$1")"
}

# The page says what its program prints.
check_readme() {
  local build=$WEIR_SCRATCH/readme project=$WEIR_SCRATCH/readme_project printed flags
  rm -rf "$project" "$build"
  cp -R "$consumer" "$project"
  readme_program "$project/main.cpp"
  printed=$(sed -nE 's/.* run it: `([^`]+)`\.$/\1/p' "$WEIR_SOURCE/README.md")
  [[ -n $printed ]] || fail "README.md does not say what its program prints"
  consumer=$project expected=$printed
  build_consumer "$installed" readme
  expect_sum "$build/consumer"

  export PKG_CONFIG_PATH=$installed/$WEIR_LIBDIR/pkgconfig
  read -ra flags < <(pkg-config --cflags --libs weir)
  "$CXX" -std=c++20 -Wall -Wextra -Werror "$project/main.cpp" "${flags[@]}" -o "$build/by_pkg_config"
  LD_LIBRARY_PATH=$installed/$WEIR_LIBDIR expect_sum "$build/by_pkg_config"
}

# Each header alone, and all of them, give one error in C++ older than 20: the line that says so. The headers
# for a swapped-in program need no C++20.
check_older_cxx() {
  local headers header compiler errors all=$WEIR_SCRATCH/all_headers.cpp
  local line='error: (#error )?"Weir needs C\+\+20: compile with -std=c\+\+20"'
  headers=$(cd "$installed/include" && find weir -name '*.hpp' ! -name cuda_resource.hpp)
  sed 's/.*/#include <&>/' <<<"$headers" >"$all"
  for compiler in "$CXX" clang++ clang++-14; do
    command -v "$compiler" >/dev/null || continue
    for header in $headers -; do
      if [[ $header == - ]]; then
        errors=$("$compiler" -std=c++17 -fsyntax-only -I"$installed/include" "$all" 2>&1 || true)
      else
        errors=$("$compiler" -std=c++17 -fsyntax-only -I"$installed/include" -include "$header" \
          -x c++ /dev/null 2>&1 || true)
      fi
      [[ $(grep -c 'error:' <<<"$errors") == 1 ]] && grep -qE "$line" <<<"$errors" ||
        fail "$compiler -std=c++17 does not give one clear error for $header: $errors"
    done
  done
}

check_other_version() {
  local wanted build=$WEIR_SCRATCH/other_version project=$WEIR_SCRATCH/other_version_project
  rm -rf "$project"
  cp -R "$consumer" "$project"
  for wanted in 99 0.2 1.0; do
    rm -rf "$build"
    sed "s/Weir 0\\.1 /Weir $wanted /" "$consumer/CMakeLists.txt" >"$project/CMakeLists.txt"
    if "$CMAKE" -S "$project" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" \
      -DCMAKE_PREFIX_PATH="$installed" >"$build.log" 2>&1; then
      fail "Weir $WEIR_VERSION was taken for $wanted"
    fi
    [[ $(tr -s ' \n' ' ' <"$build.log") == *"compatible with requested version \"$wanted\""* ]] ||
      fail "refused, but not for its version: $(cat "$build.log")"
  done
}

# $1: the tree; $2: its folder of libraries.
build_with_pkg_config() {
  local flags program=$WEIR_SCRATCH/pkg_config_consumer
  export PKG_CONFIG_PATH=$1/$2/pkgconfig
  [[ $(pkg-config --modversion weir) == "$WEIR_VERSION" ]] || fail "weir.pc tells another version"
  read -ra flags < <(pkg-config --cflags --libs weir)
  "$CXX" -std=c++20 "$consumer/main.cpp" "${flags[@]}" -o "$program"
  LD_LIBRARY_PATH=$1/$2 expect_sum "$program"
  "$CXX" -std=c++20 "$consumer/containers.cpp" "${flags[@]}" -o "$program"
  diff <(LD_LIBRARY_PATH=$1/$2 "$program") <(printf '%s\n' 'held: 12.0 MiB' 'out of memory') ||
    fail "the program with containers printed something else"
}

check_pkg_config() {
  build_with_pkg_config "$installed" "$WEIR_LIBDIR"
}

# Not a copy: the first place must be gone, or what still points there would work.
check_moved() {
  local moved="$WEIR_SCRATCH/moved elsewhere" includes
  rm -rf "$moved"
  "$CMAKE" --install "$WEIR_BUILD" --prefix "$WEIR_SCRATCH/to_be_moved" >"$WEIR_SCRATCH/install.log"
  mv "$WEIR_SCRATCH/to_be_moved" "$moved"
  build_consumer "$moved" moved_consumer
  expect_sum "$WEIR_SCRATCH/moved_consumer/consumer"
  # xargs takes the backslash before the space away, as the shell of a makefile does.
  includes=$(PKG_CONFIG_PATH=$moved/$WEIR_LIBDIR/pkgconfig pkg-config --variable=includedir weir | xargs)
  [[ $includes -ef $moved/include ]] || fail "weir.pc did not move with its tree: $includes"
}

check_absolute_libdir() {
  local file=$WEIR_SCRATCH/absolute/weir.pc flags
  mkdir -p "${file%/*}"
  cat >"$WEIR_SCRATCH/absolute.cmake" <<SCRIPT
include("$WEIR_SOURCE/tools/cmake/pkg_config.cmake")
weir_pkg_config_file(OUTPUT "$file" PREFIX /opt/weir LIBDIR /elsewhere/lib INCLUDEDIR include
                     TYPE STATIC ARCHIVE_LIBS " -pthread")
SCRIPT
  "$CMAKE" -P "$WEIR_SCRATCH/absolute.cmake"
  flags=$(PKG_CONFIG_PATH=${file%/*} pkg-config --cflags --libs weir)
  [[ $(xargs <<<"$flags") == "-I/opt/weir/include -L/elsewhere/lib -lweir-core -pthread" ]] ||
    fail "an absolute folder of libraries gives '$flags'"
}

# Fails unless the tree $1, which is for the prefix $2, has manual pages and completions; zsh's are in $3.
expect_manual() {
  local root=$1 prefix=$2 zsh=$3 page command text path
  for command in weir weir-train; do
    expect_files "$root/share/zsh/$zsh" "_$command"
    "$root/bin/$command" --completion bash | cmp - "$root/share/bash-completion/completions/$command" ||
      fail "the completions of $command are another build's"
  done
  for page in "$root"/share/man/man1/*; do
    text=$(gzip -dc "$page") || fail "$page is not packed"
    text=${text//'\-'/-}
    # Four bytes of time and the flag of a name: Debian wants neither.
    [[ $(od -An -tx1 -j3 -N5 "$page" | tr -d ' ') == 0000000000 ]] || fail "$page has a name or a time"
    [[ $text == *'.SH EXIT STATUS'* ]] || fail "$page has no exit codes"
    while read -r path; do
      [[ $path == "$prefix"/* && -e $root${path#"$prefix"} ]] || fail "$page names $path, which is not installed"
    done < <(grep -oE '/[^ \]*\.md' <<<"$text")
  done
}

check_manual() {
  expect_manual "$installed" "$installed" site-functions
  python3 -B "$WEIR_SOURCE/tests/program/command_line/programs.py" pages "$installed"/bin/weir{,-train}
}

# Installed pages link to nothing that is not installed, and show installed paths or say that they are of a clone.
check_pages() {
  python3 -B "$WEIR_SOURCE/tests/package/links.py" "$installed/share/doc/weir"
  python3 -B "$WEIR_SOURCE/tests/package/paths.py" "$WEIR_SOURCE" "$installed/share/doc/weir"
  expect_scripts "$installed/share/weir" "$installed/share/doc/weir"
}

# The scripts in $1 run where they are, and the pages in $2 name them there.
expect_scripts() {
  local data=$1 pages=$2 file include status=0
  grep -qF "$data/snapshot_to_csv.py" "$pages/docs/replay.md" || fail "replay.md does not say where snapshot_to_csv.py is"
  "$data/snapshot_to_csv.py" --help >/dev/null
  grep -qF "$data/tools/torch/build" "$pages/docs/packages.md" || fail "packages.md does not say where a plug is built"
  "$data/tools/torch/build" --headers /nowhere --cuda "$data" >"$WEIR_SCRATCH/plug.log" 2>&1 || status=$?
  ((status == 2)) || fail "a plug of no headers: exit code $status, $(cat "$WEIR_SCRATCH/plug.log")"
  # All that a plug is made of is there, but for CUDA's headers and PyTorch's.
  expect_files "$data/tools/torch" plug/install.cpp books/segments.hpp
  for file in "$data"/tools/torch/{plug,books}/*; do
    while read -r include; do
      [[ -e $data/$include ]] || fail "$file includes $include, which is not installed"
    done < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$file")
  done
}

# CMAKE_INSTALL_DATAROOTDIR may be an absolute folder.
check_absolute_data() {
  local elsewhere=$WEIR_SCRATCH/elsewhere prefix=$WEIR_SCRATCH/absolute_prefix script
  rm -rf "$elsewhere" "$prefix"
  for script in documents manual; do
    "$CMAKE" -D CMAKE_INSTALL_PREFIX="$prefix" -D WEIR_DATA="$elsewhere" -D WEIR_DOCUMENTS="$elsewhere/doc/weir" \
      -D WEIR_SOURCE="$WEIR_SOURCE" -D WEIR_SCRATCH="$WEIR_SCRATCH/pages" -D WEIR_MANUAL="$WEIR_BUILD/manual" \
      -D WEIR_GZIP=gzip -P "$WEIR_SOURCE/tools/cmake/install_$script.cmake" >"$WEIR_SCRATCH/absolute_data.log"
  done
  [[ ! -e $prefix ]] || fail "not all is in the absolute folder: $(find "$prefix" -type f)"
  expect_files "$elsewhere" doc/weir/README.md man/man1/weir-run.1.gz bash-completion/completions/weir \
    zsh/site-functions/_weir weir/snapshot_to_csv.py
  expect_scripts "$elsewhere/weir" "$elsewhere/doc/weir"
  gzip -dc "$elsewhere/man/man1/weir-run.1.gz" | sed 's/\\-/-/g' | grep -qF "$elsewhere/doc/weir/docs/weir-run.md" ||
    fail "weir-run.1 names its page somewhere else"
}

# That each compiles alone is seen where they are built. Here all are there that they include: those are
# found below the installed folder, or are somebody else's.
check_headers() {
  local headers cccl
  headers=$(cd "$installed/include" && find weir -name '*.hpp')
  (($(wc -l <<<"$headers") >= $(public_headers | wc -l))) || fail "headers are missing: $headers"
  # CCCL lies in a folder of its own in toolkits from 13.0 on.
  cccl=${WEIR_CUDA_INCLUDE:-/nonexistent}
  [[ ! -d $cccl/cccl ]] || cccl+=/cccl
  [[ -e $cccl/cuda/memory_resource ]] || headers=$(grep -vx weir/cuda_resource.hpp <<<"$headers")
  sed 's/.*/#include <&>/' <<<"$headers" |
    "$CXX" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -I"$installed/include" \
      -isystem "${WEIR_CUDA_INCLUDE:-/nonexistent}" -isystem "$cccl" -x c++ - ||
    fail "the installed headers do not compile"
}

check_deb() {
  local deb="$WEIR_SCRATCH/deb" root="$WEIR_SCRATCH/deb_root" package field value architecture
  rm -rf "$deb" "$root"
  mkdir -p "$deb"
  (cd "$deb" && "$CPACK" -G DEB --config "$WEIR_BUILD/CPackConfig.cmake" -B "$deb" \
    -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip) \
    >"$deb.log" 2>&1 || fail "$(cat "$deb.log")"
  architecture=$(dpkg --print-architecture)
  package=$deb/weir_${WEIR_VERSION}_$architecture.deb
  [[ -f $package ]] || fail "no $package among $(ls "$deb")"
  while IFS='|' read -r field value; do
    [[ $(dpkg-deb --field "$package" "$field") =~ $value ]] ||
      fail "$field is '$(dpkg-deb --field "$package" "$field")', not '$value'"
  done <<FIELDS
Package|^weir$
Version|^${WEIR_VERSION//./\\.}$
Section|^libdevel$
Architecture|^$architecture$
Maintainer|.
Description|weir-train
Depends|libc6 \(>= .*libopenblas.*libstdc\+\+6 \(>=
FIELDS
  [[ $(dpkg-deb --info "$package" shlibs) == "libweir-core ${WEIR_VERSION%.*} weir (>= $WEIR_VERSION)" ]] ||
    fail "programs that link the library would not depend on: $(dpkg-deb --info "$package" shlibs)"

  dpkg-deb --extract "$package" "$root"
  mapfile -t files < <(expected_files "$WEIR_LIBDIR")
  expect_files "$root/usr" "${files[@]}"
  [[ -z $(find "$root" -mindepth 1 -maxdepth 1 ! -name usr) ]] ||
    fail "the package reaches out of /usr: $(ls "$root")"
  expect_manual "$root/usr" /usr "$([[ -e /etc/debian_version ]] && echo vendor-completions || echo site-functions)"
  build_consumer "$root/usr" deb_consumer
  expect_sum "$WEIR_SCRATCH/deb_consumer/consumer"
}

check_remove() {
  rm -rf "$WEIR_SCRATCH"
}

"check_$1"
