#!/bin/sh
# Slurm Prolog: keep what the job's cards held before it. Slurm runs this as root, without a PATH.
# slurm.conf: Prolog=/etc/slurm/gpusnap-prolog.sh   Epilog=/etc/slurm/gpusnap-epilog.sh
# A Prolog that fails drains the node: whatever happens here, the job may start.

GPUSNAP=${GPUSNAP:-/usr/local/bin/gpusnap}
KEEP=${GPUSNAP_JOBS:-/var/lib/gpusnap/jobs}

[ -n "$SLURM_JOB_ID" ] || exit 0
/bin/mkdir -p -m 0700 "$KEEP" || exit 0
"$GPUSNAP" snap --no-models --label "slurm_job=$SLURM_JOB_ID" -o "$KEEP/$SLURM_JOB_ID.before.json"
exit 0
