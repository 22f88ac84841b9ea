#!/usr/bin/env bash
# Launches a compiler, or takes the object of the same name from another build:
#
#   reuse_object.sh BUILD LIST COMPILER ARGUMENT...
#
# BUILD is the folder of the other build. LIST names its objects that are to be compiled.
set -euo pipefail
build=$1 list=$2
shift 2
object='' before=''
for word in "$@"; do
  if [[ $before == -o ]]; then object=$word; fi
  before=$word
done
if [[ $object == *.o && -e $build/$object ]] && ! grep -qxF "$object" "$list"; then
  cp "$build/$object" "$object"
  echo "$object:" >"$object.d"
else
  exec "$@"
fi
