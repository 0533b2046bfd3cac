#!/bin/sh
# Slurm Epilog: did the job leave memory behind? Compares with what prolog.sh kept and says so in the log.
#
# GPUSNAP_LIMIT   growth of a card above which the job is said to have left something (256MiB)
# GPUSNAP_DRAIN   1: then fail, which makes Slurm drain the node until somebody looked; unset: only report
#
# Meant for nodes whose cards belong to one job at a time; what a neighbour takes meanwhile would count here.

GPUSNAP=${GPUSNAP:-/usr/local/bin/gpusnap}
KEEP=${GPUSNAP_JOBS:-/var/lib/gpusnap/jobs}
LOGGER=${LOGGER:-/usr/bin/logger -t gpusnap-epilog}

[ -n "$SLURM_JOB_ID" ] || exit 0
before=$KEEP/$SLURM_JOB_ID.before.json
after=$KEEP/$SLURM_JOB_ID.after.json
report=$KEEP/$SLURM_JOB_ID.diff.txt
[ -f "$before" ] || exit 0

"$GPUSNAP" snap --no-models --label "slurm_job=$SLURM_JOB_ID" -o "$after"
"$GPUSNAP" diff "$before" "$after" --fail-above "${GPUSNAP_LIMIT:-256MiB}" >"$report" 2>&1
case $? in
0)
    /bin/rm -f "$before" "$after" "$report"
    exit 0
    ;;
1)  # also when a figure is missing that the comparison needs: unknown is not "fine"
    $LOGGER "job $SLURM_JOB_ID of ${SLURM_JOB_USER:-?} left GPU memory behind, or nobody can tell: see $report"
    [ "$GPUSNAP_DRAIN" = 1 ] && exit 1
    exit 0
    ;;
*)
    $LOGGER "job $SLURM_JOB_ID: the comparison failed, see $report"
    exit 0
    ;;
esac
