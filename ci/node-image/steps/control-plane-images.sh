# The images kubeadm asks for, made of single binaries. Sourced, never run.
# shellcheck shell=bash

# kubeadm_images: prints those that this kubeadm wants for its own version, one a line.
kubeadm_images() {
  "${BINARIES}/kubeadm" config images list --kubernetes-version "${VERSION}" 2> "${WORK}/kubeadm.log" || {
    cat "${WORK}/kubeadm.log" >&2
    die "kubeadm does not say which images it needs" "'${BINARIES}/kubeadm config images list' failed, see above" \
      "check that the binaries are for this machine and all of one version"
  }
}

# pause_image: prints the name of the image that holds a pod's namespaces.
pause_image() {
  kubeadm_images | grep '/pause:'
}

# write_control_plane_archive FILE: an archive of all images kubeadm wants and that can be made.
# kube-proxy and CoreDNS are made when their binaries are given; without them kind must be told kubeProxyMode: none,
# and the CoreDNS pods wait in vain for their image, which nothing else minds.
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
        die "kubeadm ${VERSION} wants an image that cannot be made here: ${image}" \
          "steps/control-plane-images.sh knows no recipe for '${name}'" "add one there"
        ;;
    esac
  done < <(kubeadm_images)

  # Libraries that a binary is linked with come from the node's own root.
  docker run --rm --network none --label "${BUILD_LABEL}" -v "${roots}:/roots" -v "${HERE}/steps/complete-image-roots:/complete:ro" \
    --entrypoint /complete "${BASE_IMAGE}" > "${WORK}/complete.log" 2>&1 \
    || {
      cat "${WORK}/complete.log" >&2
      die "completing the control plane's images failed" "steps/complete-image-roots ended with an error, shown above" "mend that and run again"
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

# install_etcd ROOT: the given etcd, or Debian's behind a script that leaves out the flags it does not know.
install_etcd() {
  if [[ -x ${BINARIES}/etcd ]]; then
    install -D "${BINARIES}/etcd" "$1/usr/local/bin/etcd"
  else
    unpack_debian_package etcd-server
    install -D "${WORK}/etcd-server/usr/bin/etcd" "$1/usr/local/lib/etcd"
    install -D "${HERE}/steps/etcd-known-flags" "$1/usr/local/bin/etcd"
  fi
}

# install_pause ROOT: a static program that does nothing but reap; catatonit -P is made for just this.
install_pause() {
  unpack_debian_package catatonit
  install -D "${WORK}/catatonit/usr/bin/catatonit" "$1/pause"
}

# unpack_debian_package NAME: into ${WORK}/NAME.
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
    die "Debian's package ${package} cannot be had" "apt-get download failed, see above" "check the machine's Debian mirror and run again"
  }
  dpkg-deb -x "${dir}/${package}"_*.deb "${WORK}/${package}"
}
