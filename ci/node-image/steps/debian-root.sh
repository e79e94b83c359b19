# Debian root file systems as Docker images, made with mmdebstrap from the machine's own mirror. Sourced, never run.
# shellcheck shell=bash

# The release everything is made of, whatever release the machine itself runs.
# Its systemd (252) runs on cgroup v1 as on v2; 257 and newer refuse v1.
DEBIAN_RELEASE=bookworm

# make_debian_root TAG PACKAGE...: imports a minimal root with these packages as the local image TAG.
# The root keeps no apt sources (they may carry this machine's credentials), no manuals and no package lists.
make_debian_root() {
  local tag=$1 sources log
  shift
  sources=$(debian_sources deb "${DEBIAN_RELEASE}" "${DEBIAN_RELEASE}-updates")
  sources+=$'\n'$(debian_security_sources deb "${DEBIAN_RELEASE}")
  log=${WORK}/$(basename "${tag%%:*}")-root.log
  # shellcheck disable=SC2016 # $1 is for mmdebstrap's own shell
  mmdebstrap --mode=root --variant=essential --format=tar \
    --include="$(IFS=,; echo "$*")" \
    --aptopt='APT::Install-Recommends "false"' \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/info/*' \
    --customize-hook='rm -rf "$1"/etc/apt/sources.list* "$1"/etc/apt/auth.conf* "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*' \
    --customize-hook='rm -f "$1"/etc/machine-id "$1"/etc/resolv.conf "$1"/etc/hostname' \
    "${DEBIAN_RELEASE}" - - <<< "${sources}" 2> "${log}" \
    | docker import - "${tag}" > /dev/null \
    || {
      tail -n 30 "${log}" >&2
      die "making the Debian root for ${tag} failed" "mmdebstrap or docker import ended with an error, shown above" \
        "check that the mirror is reachable and the disk has room (about 2 GB), then run again"
    }
}
