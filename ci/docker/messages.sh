# The messages of the scripts under ci/. Sourced, never run.
#
# Progress and warnings go to stderr, so that a caller can use stdout for results.
# shellcheck shell=bash

# The name before each message; the sourcing script may set its own.
: "${SCRIPT_NAME:=$(basename "$0")}"

# say TEXT...: one line of progress, with the seconds since the script began.
say() {
  printf '%s [%3ds] %s\n' "${SCRIPT_NAME}" "${SECONDS}" "$*" >&2
}

# warn TEXT...: prints a warning; the script continues.
warn() {
  printf '%s: warning: %s\n' "${SCRIPT_NAME}" "$*" >&2
}

# die WHAT CAUSE WAY_OUT: prints what failed, why, and the remedy, then ends with 1.
die() {
  printf '%s: error: %s\n  cause:   %s\n  way out: %s\n' "${SCRIPT_NAME}" "$1" "$2" "$3" >&2
  exit 1
}
