#!/bin/sh
# A C compiler whose shared objects are none.
case "$*" in
  *-shared*) while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo "not an object" > "$2"; exit 0; fi; shift; done ;;
esac
exec cc "$@"
