#!/usr/bin/env bash
# Count on the GPUs of several nodes, in one Slurm job: a worker a GPU, whose blocks travel by UCX.
#
#   sbatch --nodes=4 --gpus-per-node=8 dasktc-slurm-gpu.sh /shared/graph.parquet --memory 100GB
#
# Every node needs the same environment (pip install "dasktc[cuda13]") and sees the graph under the same name.
#
#SBATCH --job-name=dasktc
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=01:00:00
#SBATCH --output=dasktc-%j.out
#
# The count prints the address of its page /dasktc on the scheduler's dashboard, which shows the progress; it needs Bokeh
# there (pip install "dasktc[dashboard]").
#
# TLS: UCX has none. `dasktc cluster tls` makes certificates; then give sbatch
#   --export=ALL,PROTOCOL=tls,TLS=/shared/tls    # a folder with ca.pem, cert.pem and key.pem, readable by you alone
set -euo pipefail
: "${1:?give a graph}"
DASK=${DASK:-dask}
DASKTC=${DASKTC:-dasktc}
protocol=${PROTOCOL:-ucx} # tcp, where distributed-ucxx is not installed
tls=()
[[ -z ${TLS:-} ]] || tls=(--tls-ca-file "$TLS/ca.pem" --tls-cert "$TLS/cert.pem" --tls-key "$TLS/key.pem")
gpus=$((SLURM_JOB_NUM_NODES * SLURM_GPUS_ON_NODE))

file=${SHARED:-$PWD}/scheduler-$SLURM_JOB_ID.json # every node sees it
rm -f "$file"                                     # a job that was requeued has its number again
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -f "$file"' EXIT
# The output is the count's, and warnings.
export DASK_LOGGING__DISTRIBUTED=${DASK_LOGGING__DISTRIBUTED:-warning}

common=(--scheduler-file "$file" --protocol "$protocol" "${tls[@]}")
srun --overlap --nodes=1 --ntasks=1 --gpus=0 $DASK scheduler "${common[@]}" &
# A worker for each GPU of the node. The pool is dasktc's and CuPy's: without one UCX cannot send device memory.
srun --overlap --ntasks-per-node=1 $DASK cuda worker "${common[@]}" \
    --rmm-pool-size 0.8 --set-rmm-allocator-for-libs cupy --death-timeout 300 \
    --local-directory "${TMPDIR:-/tmp}" &

# A plan is made for the workers that are there: wait for all of them.
python - "$file" "$gpus" "${TLS:-}" <<'PYTHON'
import os
import sys
import time

from dask.distributed import Client
from dasktc.executors.process.tls import security_of

file, gpus, tls = sys.argv[1:]
while not os.path.exists(file):
    time.sleep(0.2)
files = [os.path.join(tls, name) if tls else None for name in ("ca.pem", "cert.pem", "key.pem")]
with Client(scheduler_file=file, security=security_of(*files)) as client:
    client.wait_for_workers(int(gpus), timeout=600)
PYTHON
$DASKTC count --scheduler-file "$file" "${tls[@]}" --backend cuda "$@"
