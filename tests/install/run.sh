#!/usr/bin/env bash
# Installs a build into a temporary place, builds the project beside this file against it, and runs that.
# usage: run.sh BUILD_DIR      (environment: CMAKE, CXX, CXXFLAGS, as the build had them)
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
cmake=${CMAKE:-cmake}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" -S "$here" -B "$work/build" -G Ninja -DEXAMPLES="$here/../../examples" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Debug
"$cmake" --build "$work/build"
for example in fit_arrays run_study own_method; do "$work/build/$example"; done
# Where the header of MPI's processes was installed, a program can link what it declares.
if [ -e "$work/prefix/include/affpcl/runtime/mpi/mpi.h" ]; then
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_btl_vader_single_copy_mechanism=none mpirun -np 2 "$work/build/consumer_mpi"
fi
if [ -e "$work/prefix/bin/affpcl" ]; then
  "$work/prefix/bin/affpcl" --help >/dev/null
fi
python3 "$here/../runpath.py" "$work/prefix"
# Nothing but the public headers may have been installed.
if find "$work/prefix" -name '*_test*' -o -name '*-inl.h' | grep .; then
  echo "installed, but should not be (above)"
  exit 1
fi
