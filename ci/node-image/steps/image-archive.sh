# Makes container images without a container engine: with one layer, in the archive format of `docker save`. Sourced, never run.
# shellcheck shell=bash

# archive_add DIR IMAGE ROOT ENTRYPOINT_JSON: adds IMAGE with the files under ROOT to the archive in DIR.
archive_add() {
  local dir=$1 image=$2 root=$3 entrypoint=$4 layer config digest
  mkdir -p "${dir}"
  # Fixed owner, order and times, so that the same files give the same image.
  tar -C "${root}" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "${dir}/layer.tar" .
  digest=$(sha256sum "${dir}/layer.tar" | cut -d ' ' -f 1)
  layer=${digest}.tar
  mv "${dir}/layer.tar" "${dir}/${layer}"
  config=$(jq -cn --arg digest "sha256:${digest}" --arg arch "$(dpkg --print-architecture)" --argjson entrypoint "${entrypoint}" '{
    architecture: $arch, os: "linux", created: "1970-01-01T00:00:00Z",
    config: {
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      Entrypoint: $entrypoint
    },
    rootfs: {type: "layers", diff_ids: [$digest]}
  }')
  digest=$(printf '%s' "${config}" | sha256sum | cut -d ' ' -f 1)
  printf '%s' "${config}" > "${dir}/${digest}.json"
  jq -cn --arg config "${digest}.json" --arg image "${image}" --arg layer "${layer}" \
    '{Config: $config, RepoTags: [$image], Layers: [$layer]}' >> "${dir}/entries"
}

# archive_write DIR: writes the archive in DIR to standard output.
archive_write() {
  jq -cs . "$1/entries" > "$1/manifest.json"
  tar -C "$1" --exclude=./entries -cf - .
}
