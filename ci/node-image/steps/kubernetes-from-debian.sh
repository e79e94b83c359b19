# Kubernetes binaries from Debian's own source package. Sourced, never run.
#
# Debian 12's source package "kubernetes" carries the whole tree with its vendored dependencies, at 1.20.2;
# newer releases of Debian carry kubectl's part alone. It is compiled with Debian's Go in a throw-away container.
# shellcheck shell=bash

KUBERNETES_DEBIAN_VERSION=v1.20.2

# What the compiling container is made of.
BUILDER_PACKAGES=(
  bash ca-certificates coreutils dpkg-dev findutils golang-1.19-go golang-github-modern-go-reflect2-dev
  grep jq make perl rsync sed tar which xz-utils
)

# kubernetes_from_debian DIR: fills DIR with the binaries; 5 to 10 minutes on two cores.
kubernetes_from_debian() {
  local target=$1 view=${WORK}/kubernetes-source builder=ccm-conformance/kubernetes-builder:${KEY:0:12}
  say "fetching Debian's source package kubernetes"
  apt_view "${view}" "$(debian_sources deb-src "${DEBIAN_RELEASE}")"
  (cd "${view}" && view_apt_get -q source --download-only kubernetes > source.log 2>&1) || {
    cat "${view}/source.log" >&2
    die "Debian's source package kubernetes cannot be had" "apt-get source failed, see above" \
      "check the mirror, or give binaries of your own with --kubernetes-bin DIR"
  }

  say "making the container that compiles it"
  make_debian_root "${builder}" "${BUILDER_PACKAGES[@]}"
  CLEANUP_IMAGES+=("${builder}")

  say "compiling Kubernetes ${KUBERNETES_DEBIAN_VERSION} (4 to 8 minutes on two cores), log in ${target}.log"
  mkdir -p "${target}.part"
  docker run --rm --init --network none --label "${BUILD_LABEL}" \
    -v "${view}:/source:ro" -v "${HERE}/steps/compile-kubernetes:/compile-kubernetes:ro" -v "${target}.part:/out" \
    "${builder}" /compile-kubernetes "${KUBERNETES_DEBIAN_VERSION}" > "${target}.log" 2>&1 \
    || {
      tail -n 30 "${target}.log" >&2
      die "compiling Kubernetes failed" "the last lines of ${target}.log are above" \
        "mend that, or give binaries of your own with --kubernetes-bin DIR"
    }
  rm -rf "${target}"
  mv "${target}.part" "${target}"
}
