# The images that kubeadm needs, made from single binaries. Sourced, never run.
# shellcheck shell=bash

# kubeadm_images: prints the images that this kubeadm needs for its own version, one for each line.
kubeadm_images() {
  "${BINARIES}/kubeadm" config images list --kubernetes-version "${VERSION}" 2> "${WORK}/kubeadm.log" || {
    cat "${WORK}/kubeadm.log" >&2
    die "the images that kubeadm needs are unknown" "'${BINARIES}/kubeadm config images list' failed, see above" \
      "check that the binaries are for this machine and all of one version"
  }
}

# pause_image: prints the name of the image that keeps the namespaces of a Pod.
pause_image() {
  kubeadm_images | grep '/pause:'
}

# write_control_plane_archive FILE: writes an archive of the images that kubeadm needs and that can be made.
# kube-proxy and CoreDNS are made if their binaries are given. Without kube-proxy, clusters need kubeProxyMode: none. Without
# CoreDNS, its Pods wait for their image for ever, which has no other effect.
write_control_plane_archive() {
  local roots=${WORK}/image-roots archive=${WORK}/image-archive image name
  rm -rf "${roots}" "${archive}"
  while read -r image; do
    name=${image%:*}
    name=${name##*/}
    case ${name} in
      kube-apiserver | kube-controller-manager | kube-scheduler)
        install -D "${BINARIES}/${name}" "${roots}/${name}/usr/local/bin/${name}"
        ;;
      etcd) install_etcd "${roots}/etcd" ;;
      pause) install_pause "${roots}/pause" ;;
      kube-proxy)
        [[ -x ${BINARIES}/kube-proxy ]] || continue
        install -D "${BINARIES}/kube-proxy" "${roots}/kube-proxy/usr/local/bin/kube-proxy"
        ;;
      coredns)
        [[ -x ${BINARIES}/coredns ]] || continue
        install -D "${BINARIES}/coredns" "${roots}/coredns/coredns"
        ;;
      *)
        die "kubeadm ${VERSION} needs an image that cannot be made here: ${image}" \
          "steps/control-plane-images.sh knows no recipe for '${name}'" "add one there"
        ;;
    esac
  done < <(kubeadm_images)

  # The libraries of the binaries come from the root of the node.
  docker run --rm --network none --label "${BUILD_LABEL}" -v "${roots}:/roots" -v "${HERE}/steps/complete-image-roots:/complete:ro" \
    --entrypoint /complete "${BASE_IMAGE}" > "${WORK}/complete.log" 2>&1 \
    || {
      cat "${WORK}/complete.log" >&2
      die "completing the control plane's images failed" "steps/complete-image-roots ended with an error, shown above" "fix that and run again"
    }

  while read -r image; do
    name=${image%:*}
    name=${name##*/}
    [[ -d ${roots}/${name} ]] || continue
    case ${name} in
      pause) archive_add "${archive}" "${image}" "${roots}/pause" '["/pause", "-P"]' ;;
      coredns) archive_add "${archive}" "${image}" "${roots}/coredns" '["/coredns"]' ;;
      *) archive_add "${archive}" "${image}" "${roots}/${name}" null ;;
    esac
  done < <(kubeadm_images)
  archive_write "${archive}" > "$1"
  rm -rf "${roots}" "${archive}"
}

# install_etcd ROOT: installs the given etcd; otherwise that of Debian with a script that leaves out the flags it does not know.
install_etcd() {
  if [[ -x ${BINARIES}/etcd ]]; then
    install -D "${BINARIES}/etcd" "$1/usr/local/bin/etcd"
  else
    # kubeadm asks for /livez and /readyz, which older versions do not serve.
    version_below "${VERSION}" v1.35 ||
      say "warning: DIR has no etcd. kubelet restarts Debian's 3.4 every four minutes, because it fails the probes of kubeadm ${VERSION}, and calls in progress fail. Put etcd 3.5.11 or newer into DIR"
    unpack_debian_package etcd-server
    install -D "${WORK}/etcd-server/usr/bin/etcd" "$1/usr/local/lib/etcd"
    install -D "${HERE}/steps/etcd-known-flags" "$1/usr/local/bin/etcd"
  fi
}

# install_pause ROOT: installs a static program that only reaps processes, which is the purpose of catatonit -P.
install_pause() {
  unpack_debian_package catatonit
  install -D "${WORK}/catatonit/usr/bin/catatonit" "$1/pause"
}

# unpack_debian_package NAME: unpacks the package into ${WORK}/NAME.
unpack_debian_package() {
  local package=$1 dir=${WORK}/packages
  if [[ -d ${WORK}/${package} ]]; then
    return
  fi
  if [[ ! -d ${dir} ]]; then
    apt_view "${dir}" "$(debian_sources deb "${DEBIAN_RELEASE}")"
  fi
  (cd "${dir}" && view_apt_get -q download "${package}" > download.log 2>&1) || {
    cat "${dir}/download.log" >&2
    die "Debian's package ${package} cannot be downloaded" "apt-get download failed, see above" "check the machine's Debian mirror and run again"
  }
  dpkg-deb -x "${dir}/${package}"_*.deb "${WORK}/${package}"
}
