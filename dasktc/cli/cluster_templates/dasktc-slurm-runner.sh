#!/usr/bin/env bash
# Count inside one Slurm job: a task is the scheduler, one the client, all others are workers.
#
#   pip install dask-jobqueue
#   sbatch dasktc-slurm-runner.sh /shared/graph.parquet
#
#SBATCH --job-name=dasktc
#SBATCH --ntasks=18
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=4G
#SBATCH --time=01:00:00
#SBATCH --output=dasktc-%j.out
#
# While it counts, the page /dasktc of the node of the scheduler, port 8787, shows the progress; it needs Bokeh there
# (pip install "dasktc[dashboard]").
#
# GPUs: `dasktc cluster slurm-gpu`.
#
# TLS: SLURMRunner (dask-jobqueue 0.9) cannot end a scheduler that uses it. `dasktc cluster scheduler-file` can,
# in a batch script as well.
set -euo pipefail
: "${1:?give a graph}"

folder=${SHARED:-$PWD} # every node sees it
script=$folder/dasktc-$SLURM_JOB_ID.py
file=$folder/scheduler-$SLURM_JOB_ID.json
rm -f "$file" # a job that was requeued has its number again; an old file would name a scheduler that is gone
trap 'rm -f "$script" "$file"' EXIT
# The output is the count's, and warnings.
export DASK_LOGGING__DISTRIBUTED=${DASK_LOGGING__DISTRIBUTED:-warning}

cat >"$script" <<'PYTHON'
import os
import sys

from dask.distributed import Client
from dask_jobqueue.slurm import SLURMRunner

import dasktc

file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scheduler-{job_id}.json")
# Without a limit of its own, each worker of a node would take the whole job's memory there for its own.
memory = int(os.environ.get("SLURM_MEM_PER_CPU", 0)) * int(os.environ.get("SLURM_CPUS_PER_TASK", 1)) * 2**20
workers = {"nthreads": 1, "memory_limit": memory or "auto", "local_directory": os.environ.get("TMPDIR", "/tmp")}
with SLURMRunner(scheduler_file=file, worker_options=workers) as runner, Client(runner) as client:
    # Only the client comes here.
    client.wait_for_workers(runner.n_workers)
    print(repr(dasktc.triangle_count(sys.argv[1], client)), flush=True)
PYTHON

srun python "$script" "$@"
