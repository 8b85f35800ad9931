"""The samples of `dasktc cluster`, run as they are on this host, with stand-ins for what it lacks."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tomllib
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from dasktc.cli import main as cli
from dasktc.cli.cluster_samples import SAMPLES
from tests.support import daemons
from tests.support.processes import DASK, DASKTC, patience, until
from tests.support.samples import GRAPH, TRIANGLES, environment, executable, written


@pytest.mark.parametrize("kind", SAMPLES)
def test_what_a_sample_imports_is_there(kind):
    """Shell scripts contain Python, whose imports no tool checks."""
    for module, names in re.findall(r"^\s*from (dasktc[\w.]*) import ([\w, ]+)$", SAMPLES[kind].text(), re.MULTILINE):
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name), (module, name)


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_sample_is_printed_and_well_formed(kind, capsys):
    assert cli.main(["cluster", kind]) == 0
    text = capsys.readouterr().out
    assert text == SAMPLES[kind].text()
    assert "TLS" in text
    file = SAMPLES[kind].file
    assert file == "Dockerfile" or file.removeprefix("dasktc-").split(".")[0] == kind
    assert file in text or file == "Dockerfile", "its usage names it as it is"
    if file.endswith(".py"):
        compile(text, kind, "exec")
    elif file.endswith(".sh"):
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    elif file.endswith(".yaml"):
        assert [document["kind"] for document in yaml.safe_load_all(text)] == ["DaskCluster", "Job"]


def test_kinds_are_listed_with_a_sentence_each(capsys):
    for arguments in ((), ("--help",)):
        assert cli.main(["cluster", *arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
        for kind, one in SAMPLES.items():
            assert [line for line in lines if line.split() == [kind, *one.sentence.split()]]
    assert cli.main(["cluster", "-o", "somewhere"]) == 2
    assert "KIND is missing" in capsys.readouterr().err


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_is_written_under_its_own_name_or_another(kind, tmp_path, capsys):
    own, other = tmp_path / SAMPLES[kind].file, tmp_path / "other"
    for out, path in ((tmp_path, own), (other, other)):
        assert cli.main(["cluster", kind, "-o", str(out)]) == 0
        assert capsys.readouterr().out == f"{path}: its first lines tell how to use it\n"
        assert path.read_text() == SAMPLES[kind].text()
        path.write_text("changed")
        assert cli.main(["cluster", kind, "-o", str(out)]) == 2
        assert capsys.readouterr().err == (
            f"dasktc: error: {path} exists: name another file, or replace it with --force\n"
        )
        assert path.read_text() == "changed"
        assert cli.main(["cluster", kind, "-o", str(out), "--force"]) == 0
        assert path.read_text() == SAMPLES[kind].text()
        capsys.readouterr()


def test_a_sample_that_cannot_be_written(tmp_path, capsys):
    assert cli.main(["cluster", "ssh", "-o", str(tmp_path / "none" / "file")]) == 2
    assert f"there is no folder {tmp_path / 'none'}; make it" in capsys.readouterr().err
    assert cli.main(["cluster", "ssh", "-o", "/dev/full", "--force"]) == 1
    assert "No space left on device" in capsys.readouterr().err


def test_the_images_are_those_of_the_pods_and_what_they_install_exists():
    root, text = Path(__file__).parents[2], SAMPLES["dockerfile"].text()
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    images = dict(re.findall(r"docker build --target (\w+) -t (\S+) \.", text))
    stages = dict(re.findall(r"^FROM (\S+) AS (\w+)$", text, re.M))
    assert set(images) == set(stages.values()) == {"cpu", "gpu"}
    for target, kind in (("cpu", "kubernetes"), ("gpu", "kubernetes-gpu")):
        manifest = SAMPLES[kind].text()
        assert set(re.findall(r"image: (\S+)", manifest)) == {images[target]}
        assert f"`dasktc cluster dockerfile`, built with --target {target}" in manifest
    for extras in re.findall(r"dasktc\[([\w,]+)\]", text):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    rapids = re.search(r"- cudf=([\d.]+)", (root / "environment.yml").read_text()).group(1)
    pythons = re.findall(r"python:3\.(\d+)-|-py3\.(\d+) ", text)
    assert [base for base in stages if base.startswith(f"rapidsai/base:{rapids}-cuda13-")]
    assert re.search(r">=3\.(\d+)", project["requires-python"]).group(1) <= min("".join(pair) for pair in pythons)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Certificates as the sample for TLS makes them."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make certificates with")
    folder = tmp_path_factory.mktemp("samples") / "tls"
    subprocess.run(["bash", "-s", str(folder)], input=SAMPLES["tls"].text(), text=True, check=True, capture_output=True)
    assert {path.name for path in folder.iterdir()} >= {"ca.pem", "cert.pem", "key.pem"}
    assert not [path for path in folder.iterdir() if path.stat().st_mode & stat.S_IRWXO]
    return str(folder)


@contextmanager
def background(*command, log, env):
    with open(log, "a") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=env, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def run(*command, env):
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(), env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_scheduler_file(tmp_path, certificates):
    file, script = tmp_path / "scheduler.json", written("scheduler-file", tmp_path)
    env = environment(tmp_path, SCHEDULER_FILE=str(file), CORES="2", TLS=certificates)
    with ExitStack() as stack:
        for what, port in (("scheduler", ("--port", "0", "--no-dashboard")), ("worker", ("--no-dashboard",))):
            stack.enter_context(background("bash", script, what, *port, log=tmp_path / "log", env=env))
        out = run("bash", script, "count", GRAPH, env=env)
        assert json.loads(file.read_text())["address"].startswith("tls://")
    assert f"triangles  {TRIANGLES}" in out


def test_scheduler_file_says_what_it_needs(tmp_path):
    script = written("scheduler-file", tmp_path)
    for arguments, why in (([], "every host sees"), (["nobody"], "none of")):
        env = environment(tmp_path, **({"SCHEDULER_FILE": "x"} if arguments else {}))
        done = subprocess.run(["bash", script, *arguments], capture_output=True, text=True, env=env)
        assert done.returncode
        assert why in done.stderr


@pytest.fixture
def slurm(tmp_path):
    """Stand-ins for Slurm's commands, with which a job is a process on this host."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue starts Slurm's jobs")
    env = environment(tmp_path, SLURM_JOBS=str(tmp_path / "jobs"))
    (tmp_path / "jobs").mkdir()
    programs = tmp_path / "programs"
    sbatch = """
        [[ $1 != --test-only ]] || exec cat >/dev/null
        cp "${!#}" "$SLURM_JOBS/script.$$"
        setsid bash "$SLURM_JOBS/script.$$" >"$SLURM_JOBS/$$.out" 2>&1 &
        echo $! >"$SLURM_JOBS/$$"
        echo "Submitted batch job $$"
    """
    scancel = 'for job; do kill -- "-$(cat "$SLURM_JOBS/$job")"; done'
    srun = """
        for ((SLURM_PROCID = 0; SLURM_PROCID < SLURM_NTASKS; SLURM_PROCID++)); do
            export SLURM_PROCID
            "$@" &
        done
        wait
    """
    for name, script in (("sbatch", sbatch), ("scancel", scancel), ("srun", srun)):
        executable(programs / name, script)
    return env


@pytest.mark.slow
def test_slurm_cluster(tmp_path, slurm, certificates):
    """The jobs that dask-jobqueue writes are submitted, run, count and are cancelled."""
    without_slurm()
    script = written("slurm", tmp_path, ("CORES = 8", "CORES = 1"), ('"32GB"', '"1GB"'))
    slurm |= {"JOBS": "2", "LOGS": str(tmp_path / "logs"), "TLS": certificates}
    assert f"triangles  {TRIANGLES}" in run("python", script, GRAPH, env=slurm)
    jobs = [path.read_text() for path in (tmp_path / "jobs").glob("script.*")]
    assert len(jobs) == 2
    for job in jobs:
        assert "#SBATCH --cpus-per-task=1" in job
        assert "--tls-ca-file" in job
    sessions = [int(path.read_text()) for path in (tmp_path / "jobs").iterdir() if path.name.isdigit()]
    until(lambda: not any(alive(session) for session in sessions), seconds=20)


WITHOUT_GPUS = """
    [[ $1 == cuda ]] || exec {dask} "$@"
    shift 2
    taken=()
    while (($#)); do
        case $1 in
        --rmm-pool-size | --set-rmm-allocator-for-libs) shift ;;
        *) taken+=("$1") ;;
        esac
        shift
    done
    exec {dask} worker "${{taken[@]}}" --nworkers 2 --nthreads 1
"""
"""`dask`, with workers of CPUs in the place of those of GPUs: two a node."""


def without_gpus(env):
    """The environment, with a stand-in for `dask cuda worker` that starts workers without GPUs."""
    stand_in = Path(env["HOME"]) / "programs" / "dask"
    executable(stand_in, WITHOUT_GPUS.format(dask=" ".join(DASK)))
    return env | {"DASK": str(stand_in)}


@pytest.mark.slow
def test_slurm_gpus(tmp_path):
    """A job of two nodes, with stand-ins for srun and for workers with GPUs."""
    env = without_gpus(environment(tmp_path, SLURM_JOB_ID="9", SLURM_JOB_NUM_NODES="2", SLURM_GPUS_ON_NODE="2"))
    srun = """
        nodes=2
        while [[ $1 == --* ]]; do [[ $1 != --nodes=1 ]] || nodes=1; shift; done
        trap 'kill $(jobs -p)' TERM
        for ((node = 0; node < nodes; node++)); do "$@" & done
        wait
    """
    executable(tmp_path / "programs" / "srun", srun)
    script = written(
        "slurm-gpu",
        tmp_path,
        ("--backend cuda", "--backend cpu"),
        ('scheduler "${common', 'scheduler --port 0 --no-dashboard "${common'),
    )
    out = run("bash", script, GRAPH, env=env | {"SHARED": str(tmp_path), "PROTOCOL": "tcp"})
    assert f"triangles  {TRIANGLES}" in out
    assert ", 4 at a time" in out
    assert not list(tmp_path.glob("*-9.json"))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def without_slurm():
    if daemons.lacking() is None:
        pytest.skip("Slurm itself runs this here: system/test_slurm.py")


@pytest.mark.slow
def test_slurm_runner(tmp_path, slurm):
    without_slurm()
    script = written("slurm-runner", tmp_path)
    slurm |= {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SHARED": str(tmp_path)}
    out = run("bash", script, GRAPH, env=slurm)
    assert f"triangles  {TRIANGLES}" in out
    assert ", 2 at a time" in out
    assert not list(tmp_path.glob("*-7.*"))


def test_slurm_runner_needs_a_graph(tmp_path, slurm):
    done = subprocess.run(["bash", written("slurm-runner", tmp_path)], capture_output=True, text=True, env=slurm)
    assert done.returncode
    assert "give a graph" in done.stderr


SSH_SERVER = """
import asyncio, os, signal, sys
import asyncssh

async def handle(process):
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_shell(
        process.command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
    ends = [asyncio.ensure_future(child.wait()), asyncio.ensure_future(process.channel.wait_closed())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGTERM)  # the connection is gone
        await child.wait()
    process.exit(child.returncode)

async def serve(folder):
    host, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user.write_private_key(f"{folder}/id_ed25519")
    user.write_public_key(f"{folder}/authorized")
    keys = {"server_host_keys": [host], "authorized_client_keys": f"{folder}/authorized"}
    server = await asyncssh.listen("127.0.0.1", 0, process_factory=handle, encoding=None, **keys)
    port = server.sockets[0].getsockname()[1]
    with open(f"{folder}/known", "w") as known:
        known.write(f"[127.0.0.1]:{port} {host.export_public_key().decode().strip()}\\n")
    os.rename(f"{folder}/known", f"{folder}/known_hosts")
    await server.wait_closed()

asyncio.run(serve(sys.argv[1]))
"""


@contextmanager
def ssh_server(home):
    """A server of this user, for a client with a certain key, that runs what it is told; yields its port."""
    pytest.importorskip("asyncssh", reason="asyncssh is what SSHCluster uses, and the server here")
    folder = home / ".ssh"
    folder.mkdir()
    with background(sys.executable, "-c", SSH_SERVER, str(folder), log=home / "sshd.log", env=os.environ):
        known = folder / "known_hosts"
        until(known.exists)
        yield known.read_text().partition("]:")[2].partition(" ")[0]


@pytest.mark.slow
def test_ssh(tmp_path, certificates):
    env = environment(tmp_path, WORKERS="2", TLS=certificates)
    with ssh_server(tmp_path) as port:
        script = written("ssh", tmp_path, ('":8787"', '":0"'))
        out = run("python", script, GRAPH, "127.0.0.1", env=env | {"SSH_PORT": port})
    assert f"triangles  {TRIANGLES}" in out
    assert ", 2 at a time" in out


@pytest.mark.slow
def test_ssh_gpus(tmp_path):
    """Dask's own worker stands in for dask-cuda's, which takes other options."""
    env = environment(tmp_path, GPUS="1", PROTOCOL="tcp")
    changes = [('"dask_cuda.CUDAWorker"', '"distributed.Nanny"'), ('"rmm_pool_size": 0.8,', '"nthreads": 1,')]
    changes += [
        ('"rmm_allocator_external_lib_list": ["cupy"],', ""),
        ('backend="cuda"', 'backend="cpu"'),
        ('":8787"', '":0"'),
    ]
    with ssh_server(tmp_path) as port:
        out = run("python", written("ssh-gpu", tmp_path, *changes), GRAPH, "127.0.0.1", env=env | {"SSH_PORT": port})
    assert f"triangles  {TRIANGLES}" in out


@pytest.mark.slow
def test_kubernetes_gpus(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    text = (
        SAMPLES["kubernetes-gpu"]
        .text()
        .replace("dasktc-scheduler:8786", f"127.0.0.1:{port}")
        .replace("cuda, --w", "cpu, --w")
    )
    text = (
        text.replace("/graphs/graph.parquet", GRAPH).replace("$(DASK_WORKER_NAME)", "worker-0").replace('"8788"', '"0"')
    )
    cluster, job = yaml.safe_load_all(text)
    spec = cluster["spec"]
    scheduler, worker = (spec[part]["spec"]["containers"][0] for part in ("scheduler", "worker"))
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == 1
    scheduler["args"] += ["--host", "127.0.0.1", "--port", port, "--no-dashboard"]
    worker["args"] += ["--host", "127.0.0.1", f"tcp://127.0.0.1:{port}"]
    env = without_gpus(environment(tmp_path))
    pod = job["spec"]["template"]["spec"]["containers"][0]
    with ExitStack() as stack:
        for container in (scheduler, worker):
            arguments = (env["DASK"], *container["args"][1:])
            stack.enter_context(background(*arguments, log=tmp_path / "log", env=env))
        result = json.loads(run(*command(pod), env=env))
    assert f"{result['triangles']:,}" == TRIANGLES


@pytest.mark.slow
def test_kubernetes(tmp_path, certificates):
    """The programs of the manifest's pods find each other and count; its lines for TLS are enabled."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    text = without_comments(SAMPLES["kubernetes"].text())
    for name, here in (
        ("dasktc-scheduler:8786", f"127.0.0.1:{port}"),
        ("/tls/", f"{certificates}/"),
        ("/graphs/graph.parquet", GRAPH),
        ("$(DASK_WORKER_NAME)", "worker-0"),
        ('"8788"', '"0"'),
    ):
        text = text.replace(name, here)
    cluster, job = yaml.safe_load_all(text)
    scheduler, worker = (cluster["spec"][part]["spec"]["containers"][0] for part in ("scheduler", "worker"))
    assert cluster["spec"]["scheduler"]["service"]["ports"][0]["port"] == 8786
    scheduler["args"] += ["--host", "127.0.0.1", "--port", port, "--no-dashboard"]
    worker["args"] += ["--host", "127.0.0.1"]
    with ExitStack() as stack:
        for pod in (scheduler, worker):
            stack.enter_context(background(*command(pod), log=tmp_path / "log", env=variables(tmp_path, pod)))
        pod = job["spec"]["template"]["spec"]["containers"][0]
        found = json.loads(run(*command(pod), env=variables(tmp_path, pod)))
    assert f"{found['triangles']:,}" == TRIANGLES


def command(pod):
    first, *others = pod["args"]
    return [*{"dask": DASK, "dasktc": DASKTC}[first], *others]


def variables(folder, pod):
    return environment(folder, **{item["name"]: item["value"] for item in pod.get("env", [])})


def without_comments(text):
    """The manifest with its lines for TLS enabled."""
    lines = text.splitlines()
    return "\n".join(line.replace("# ", "", 1) if line.endswith("# TLS") else line for line in lines)
