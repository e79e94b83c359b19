# The node image itself: the Debian root, the binaries of Kubernetes, and the images of the control plane in the store of
# containerd. Sourced, never run.
# shellcheck shell=bash

# Units of Debian's systemd that do not work in a container, or would use the terminal.
MASKED_UNITS=(
  console-getty.service dev-hugepages.mount getty.target sys-fs-fuse-connections.mount sys-kernel-config.mount
  sys-kernel-debug.mount sys-kernel-tracing.mount systemd-logind.service systemd-remount-fs.service
  systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-modules-load.service
)

# The programs of a node in /usr/bin.
NODE_BINARIES=(kubeadm kubelet kubectl)

# make_base_image: makes the Debian root as ${BASE_IMAGE}. It is kept between builds, because it is the same for all versions.
make_base_image() {
  local packages
  if docker image inspect "${BASE_IMAGE}" > /dev/null 2>&1; then
    return
  fi
  say "making the Debian root of the nodes"
  mapfile -t packages < <(sed -E 's/[[:space:]]*#.*//; /^$/d' "${HERE}/steps/node-packages")
  make_debian_root "${BASE_IMAGE}" "${packages[@]}"
}

# assemble_node_image IMAGE: makes the image from ${BASE_IMAGE} and ${BINARIES}.
assemble_node_image() {
  local image=$1 archive=${WORK}/control-plane.tar container proxy=none

  say "making the control plane's images"
  write_control_plane_archive "${archive}"
  if [[ -x ${BINARIES}/kube-proxy ]]; then
    proxy=present
  fi

  say "putting the node image together"
  # The stop signal makes systemd shut down in order; the image inherits it from the container.
  # The container is privileged because containerd mounts. Its store is on a volume, because overlayfs does not work on an overlay.
  container=$(docker run -d --privileged --network none --label "${BUILD_LABEL}" -v /store \
    --stop-signal SIGRTMIN+3 --entrypoint sleep "${BASE_IMAGE}" infinity)
  node_files | docker cp - "${container}:/"
  docker exec -i "${container}" sh -c 'cat > /store/control-plane.tar' < "${archive}"
  docker exec -i "${container}" bash -s -- "${MASKED_UNITS[@]}" < "${HERE}/steps/prepare-node" > "${WORK}/prepare.log" 2>&1 || {
    tail -n 30 "${WORK}/prepare.log" >&2
    die "preparing the node image failed" "steps/prepare-node ended with an error in the container, shown above" "fix that and run again"
  }
  docker kill "${container}" > /dev/null
  docker commit \
    --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' \
    --change 'CMD []' \
    --change 'ENV container=docker' \
    --change "LABEL io.ccm-conformance.node-image=1 io.ccm-conformance.kubernetes=${VERSION} io.ccm-conformance.kube-proxy=${proxy} io.ccm-conformance.default-cni=none io.ccm-conformance.key=${KEY}" \
    "${container}" "${image}" > /dev/null
  docker rm -f -v "${container}" > /dev/null
}

# node_files: writes a tar stream of all files that are added to the Debian root.
node_files() {
  local stage=${WORK}/node-files binary systemd_cgroup=true
  rm -rf "${stage}"
  cp -r "${HERE}/root" "${stage}"
  for binary in "${NODE_BINARIES[@]}"; do
    install -D "${BINARIES}/${binary}" "${stage}/usr/bin/${binary}"
  done
  echo "${VERSION}" > "${stage}/kind/version"
  # The cgroup driver of the kubelet that kind chooses itself.
  if version_below "${VERSION}" v1.24; then
    systemd_cgroup=false
  fi
  sed -i -e "s|@PAUSE_IMAGE@|$(pause_image)|" -e "s|@SYSTEMD_CGROUP@|${systemd_cgroup}|" "${stage}/etc/containerd/config.toml"
  tar -C "${stage}" --owner=0 --group=0 --numeric-owner -cf - .
  rm -rf "${stage}"
}

# version_below A B: succeeds if version A is older than B.
version_below() {
  [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]
}
