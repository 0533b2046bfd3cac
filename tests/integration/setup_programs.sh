#!/bin/sh
# Installs what the integration tests run: Chromium, Prometheus, node_exporter, logrotate, mkfs.ext4, systemd-analyze
# (Debian), DuckDB (PyPI).
# Usage: setup_programs.sh PYTHON. Needs root and apt where a program is missing; starts no service.
set -eu
python=$1

missing=
for pair in chromium:chromium promtool:prometheus prometheus-node-exporter:prometheus-node-exporter \
    logrotate:logrotate mkfs.ext4:e2fsprogs systemd-analyze:systemd; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "setup_programs.sh: please install:$missing" >&2
        exit 1
    fi
    # Debian starts a service once its package is installed; the tests run theirs by hand, on loopback.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        trap 'rm -f "$policy"' EXIT
    fi
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of packages
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
"$python" -c 'import duckdb' 2>/dev/null ||
    "$python" -m pip install --quiet --disable-pip-version-check 'duckdb>=1.1,<3'
