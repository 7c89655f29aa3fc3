#!/bin/sh
# A C compiler that answers questions and refuses every file.
case "$*" in *girih*|*.c*) echo "kernel.c:1:1: error: no space left on device" >&2; exit 1;; esac
exec cc "$@"
