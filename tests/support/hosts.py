"""Emulated hosts on this machine: Linux namespaces with their own names, addresses, processes and local disks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

APART = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
NETWORK = "10.201.78"

SETUP = """
hostname "$1" && mount --bind "$2/hosts" /etc/hosts && mount -t tmpfs none "$2/local" && ip link set lo up && echo up
cat >/dev/null  # until the test's process is gone
:
"""


@dataclass(frozen=True)
class Host:
    """Runs commands as on another machine that shares the file system, except for the folder `local`."""

    name: str
    address: str
    pid: int
    """Process id of its first process, with which all its others end."""

    def command(self, *command: str) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--all", "--wd=.", *command]

    def ip(self, *arguments: str) -> None:
        subprocess.run(["nsenter", f"--target={self.pid}", "--net", "ip", *arguments], check=True)


def lacking() -> str | None:
    """Why emulated hosts are impossible here; None where they are possible."""
    if os.geteuid():
        return "only root makes hosts of namespaces"
    if missing := [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]:
        return f"hosts are made with {', '.join(missing)}, not installed here"
    tried = subprocess.run([*APART, "ip", "link", "add", "bridge", "type", "bridge"], capture_output=True, text=True)
    return f"no namespaces with a network here: {tried.stderr.strip()}" if tried.returncode else None


@contextmanager
def hosts_of(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Host]]:
    """Hosts that know each other's names, joined by the bridge of the first one."""
    (folder / "local").mkdir()
    addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(names, 1)}
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    with ExitStack() as stack:
        found = {name: stack.enter_context(_host(folder, name, address)) for name, address in addresses.items()}
        first, *others = found.values()
        first.ip("link", "add", "bridge", "type", "bridge")
        _join(first, "bridge", others[0])
        for other in others:
            first.ip("link", "add", other.name, "type", "veth", "peer", "name", "eth0", "netns", str(other.pid))
            first.ip("link", "set", other.name, "master", "bridge", "up")
            _join(other, "eth0", first)
        yield found


@contextmanager
def _host(folder: Path, name: str, address: str) -> Iterator[Host]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*APART, "sh", "-c", SETUP, "sh", name, str(folder)], **pipes, text=True) as process:
        assert process.stdout.readline() == "up\n"
        first = child(process.pid)
        try:
            yield Host(name, address, first)
        finally:
            os.kill(first, signal.SIGKILL)  # unshare is there until all of the host's processes are gone


def child(pid: int) -> int:
    """The process that unshare or nsenter runs, by its number outside."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _join(host: Host, device: str, gateway: Host) -> None:
    host.ip("addr", "add", f"{host.address}/24", "dev", device)
    host.ip("link", "set", device, "up")
    host.ip("route", "add", "default", "via", gateway.address)  # Dask asks the kernel for the way out
