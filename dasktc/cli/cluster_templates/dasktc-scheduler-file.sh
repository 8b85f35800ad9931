#!/usr/bin/env bash
# A Dask cluster by hand: hosts find each other through a file that all of them see.
#
#   export SCHEDULER_FILE=/shared/scheduler.json   # the same on every host
#   bash dasktc-scheduler-file.sh scheduler # on one host
#   bash dasktc-scheduler-file.sh worker # on every host with CPUs: a worker of one thread a core
#   bash dasktc-scheduler-file.sh gpu-worker # on every host with GPUs: a worker a GPU (pip install dask-cuda)
#   bash dasktc-scheduler-file.sh count /shared/graph.parquet --partition hash2d    # anywhere
#
# The count prints the address of its page /dasktc on the scheduler's dashboard (port 8787), which shows the progress;
# it needs Bokeh beside the scheduler: pip install "dasktc[dashboard]".
#
# Under Slurm, in a batch script, whose end is the end of its steps:
#   #SBATCH --nodes=4 --exclusive
#   export SCHEDULER_FILE=/shared/scheduler-$SLURM_JOB_ID.json
#   srun --overlap --nodes=1 --ntasks=1 bash dasktc-scheduler-file.sh scheduler &
#   srun --overlap --ntasks-per-node=1 bash dasktc-scheduler-file.sh worker &
#   bash dasktc-scheduler-file.sh count /shared/graph.parquet
#
# TLS: without it, anyone who reaches a port can run code there. `dasktc cluster tls` makes certificates;
#   export TLS=/shared/tls      # a folder with ca.pem, cert.pem and key.pem, readable by you alone
#
# GPUs of several hosts, and several GPUs of one, are faster with UCX (pip install distributed-ucxx), which has no TLS:
#   export PROTOCOL=ucx         # for scheduler, gpu-worker and count alike
set -euo pipefail
: "${SCHEDULER_FILE:?give the path of a file that every host sees}"
DASK=${DASK:-dask}
DASKTC=${DASKTC:-dasktc}
cores=${CORES:-$(nproc)}
what=${1:?scheduler, worker, gpu-worker or count}
shift

common=(--scheduler-file "$SCHEDULER_FILE")
protocol=${PROTOCOL:-${TLS:+tls}}
tls=()
[[ -z ${TLS:-} ]] || tls=(--tls-ca-file "$TLS/ca.pem" --tls-cert "$TLS/cert.pem" --tls-key "$TLS/key.pem")

case $what in
scheduler)
    rm -f "$SCHEDULER_FILE" # an old one would name a scheduler that is gone
    exec $DASK scheduler "${common[@]}" --protocol "${protocol:-tcp}" "${tls[@]}" "$@"
    ;;
worker)
    # One thread a process: a counting task is one thread's work, and its memory is its own.
    # --death-timeout: a worker that finds no scheduler ends.
    exec $DASK worker "${common[@]}" --protocol "${protocol:-tcp}" "${tls[@]}" \
        --nworkers "$cores" --nthreads 1 --death-timeout 60 "$@"
    ;;
gpu-worker)
    # The pool is dasktc's and CuPy's; a worker that runs out of it fails the task, not the host.
    exec $DASK cuda worker "${common[@]}" --protocol "${protocol:-tcp}" "${tls[@]}" \
        --rmm-pool-size 0.8 --set-rmm-allocator-for-libs cupy --enable-cudf-spill --death-timeout 60 "$@"
    ;;
count)
    exec $DASKTC count "${common[@]}" "${tls[@]}" "$@"
    ;;
*)
    echo "dasktc-scheduler-file.sh: $what is none of scheduler, worker, gpu-worker and count" >&2
    exit 2
    ;;
esac
