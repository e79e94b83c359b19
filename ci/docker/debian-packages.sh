# Debian packages of any suite, from the mirror that this machine already uses. Sourced, never run.
#
# No mirror is named here: the address and its keyring come from the machine's own apt configuration, so
# proxies, credentials (auth.conf.d) and local mirrors keep working. Suites that the machine itself does not
# use are read through a private "view": a source list and package lists in a separate folder. Nothing is
# added to /etc/apt, and no upgrade can install packages from there. Needs messages.sh.
# shellcheck shell=bash

# machine_release: prints the code name of the Debian release of this machine (bookworm).
machine_release() {
  # shellcheck source=/dev/null
  (. /etc/os-release && printf '%s\n' "${VERSION_CODENAME:-unknown}")
}

# archive_of SUITE: prints the address from which the machine gets component main of SUITE, or nothing. A
# source may name its suite by code name or by role (bookworm, oldstable); apt knows both.
archive_of() {
  # shellcheck disable=SC2016 # the placeholders are apt's
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(CODENAME)' 'Created-By: Packages' 'Component: main' \
    | awk -v suite="$1" '!found && ($2 == suite || $3 == suite) { found = 1; sub("/$", "", $1); print $1 }'
}

# debian_mirror: prints the address from which the machine gets its own Debian release.
debian_mirror() {
  local release uri
  release=$(machine_release)
  uri=$(archive_of "${release}")
  if [[ -z ${uri} ]]; then
    die "no Debian mirror known on this machine" \
      "no apt source carries component main of the release '${release}' that /etc/os-release names" \
      "run this on Debian with a source for its own release in /etc/apt, or install docker, kind and kubectl by other means"
  fi
  printf '%s\n' "${uri}"
}

# debian_keyring: prints the keyring that signs Debian's archive. On Debian, the package
# debian-archive-keyring contains it; otherwise it is the first Signed-By of the machine's sources.
debian_keyring() {
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  if [[ ! -r ${keyring} ]]; then
    keyring=$(find /etc/apt \( -name '*.sources' -o -name '*.list' \) -exec \
      sed -nE 's/^Signed-By:[[:space:]]*(\/[^[:space:]]+).*/\1/p; s/.*[[:space:][]signed-by=([^][[:space:]]+).*/\1/p' {} + \
      | sed -n 1p)
  fi
  if [[ ! -r ${keyring} ]]; then
    die "no keyring for Debian's archive" \
      "neither /usr/share/keyrings/debian-archive-keyring.gpg nor a Signed-By file of the apt sources is readable" \
      "apt-get install debian-archive-keyring"
  fi
  printf '%s\n' "${keyring}"
}

# debian_sources TYPE SUITE...: prints source lines (TYPE is deb or deb-src) for component main of these suites.
debian_sources() {
  local type=$1 suite mirror keyring
  shift
  mirror=$(debian_mirror)
  keyring=$(debian_keyring)
  for suite in "$@"; do
    printf '%s [signed-by=%s] %s %s main\n' "${type}" "${keyring}" "${mirror}" "${suite}"
  done
}

# debian_security_sources TYPE RELEASE: prints the source for RELEASE's security updates, at the address from
# which the machine gets those of its own release; nothing if it gets none.
debian_security_sources() {
  local type=$1 release=$2 uri keyring
  uri=$(archive_of "$(machine_release)-security")
  keyring=$(debian_keyring)
  if [[ -n ${uri} ]]; then
    printf '%s [signed-by=%s] %s %s-security main\n' "${type}" "${keyring}" "${uri}" "${release}"
  fi
}

# apt_view DIR SOURCE_LINES: opens (and updates) a private view in DIR; view_apt_get and view_apt_cache then read it.
apt_view() {
  local dir=$1 lines=$2
  mkdir -p "${dir}/lists/partial" "${dir}/cache/archives/partial"
  printf '%s\n' "${lines}" > "${dir}/sources.list"
  VIEW_OPTIONS=(
    -o "Dir::Etc::SourceList=${dir}/sources.list"
    -o "Dir::Etc::SourceParts=/dev/null"
    -o "Dir::State::Lists=${dir}/lists"
    -o "Dir::Cache=${dir}/cache"
    -o "APT::Sandbox::User=root" # the folder belongs to root; apt's download user could not write there
    -o "Acquire::Languages=none"
    -o "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"
  )
  local log=${dir}/update.log
  view_apt_get -q update > "${log}" 2>&1 || {
    cat "${log}" >&2
    die "reading the package lists failed" "apt-get update ended with an error, shown above, for: ${lines}" \
      "check that the mirror of /etc/apt is reachable and carries these suites, then run again"
  }
}

# view_apt_get ARGS... and view_apt_cache ARGS...: apt with the view that was opened last.
view_apt_get() { apt-get "${VIEW_OPTIONS[@]}" "$@"; }
view_apt_cache() { apt-cache "${VIEW_OPTIONS[@]}" "$@"; }
