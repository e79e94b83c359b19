# Where ci/docker stores what it must remember about an engine that it started. Sourced, never run.
# shellcheck shell=bash disable=SC2034 # the paths are for the scripts that source this

STATE_DIR=${XDG_CACHE_HOME:-/var/cache}/ccm-conformance/docker
PID_FILE=${STATE_DIR}/dockerd.pid
LOG_FILE=${STATE_DIR}/dockerd.log
RUNTIME_FILE=${STATE_DIR}/runc-without-cap-sys-resource

# start_time PID: the process's start in clock ticks since boot, which distinguishes it from a later process
# with the same number. Prints nothing for a process that has ended, even if its parent has not noticed yet
# (state Z).
start_time() {
  sed -E 's/^.*\) //' "/proc/$1/stat" 2> /dev/null | awk '$1 != "Z" { print $20 }'
}

# started_engine: prints the process id of the engine that setup started if it is still running, otherwise fails.
started_engine() {
  local pid started
  [[ -r ${PID_FILE} ]] || return 1
  read -r pid started < "${PID_FILE}" || return 1
  [[ -n ${pid} && -n ${started} && $(start_time "${pid}") == "${started}" ]] || return 1
  printf '%s\n' "${pid}"
}

# engine_answers: is there a Docker engine behind the client's current context?
engine_answers() {
  command -v docker > /dev/null && timeout 10 docker version --format '{{.Server.Version}}' > /dev/null 2>&1
}
