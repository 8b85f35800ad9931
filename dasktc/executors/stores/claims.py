"""Temporary folders that end with their process; folders of killed processes are removed by a later process.

A folder's name contains the host and boot on which it was made, and its process holds a lock on a file in it, which the
operating system releases however the process ends. Only a process of the same host asks for the lock, because on a
network disk a lock may hold on one host alone. Where that disk has no locks, folders of an earlier boot are certainly
abandoned, and those of this boot are left alone.

`distributed.diskutils.WorkSpace` does the same for the folders of Dask's workers (`dask-scratch-space`), and what this
package puts there is left to it. It is not used elsewhere: its names do not distinguish hosts, it leaves a folder and
lock files in the user's folder, it logs a traceback where there are no locks, and importing it takes 0.25 s and 12 MB
in a process that needs no cluster. Workers that this package starts have theirs in a folder of this module.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import locket

from dasktc.once import once

__all__ = ["LOCK", "PREFIX", "Claim", "remove_abandoned"]

LOCK = "owner.lock"
PREFIX = "dasktc-"
BOOT = Path("/proc/sys/kernel/random/boot_id")
GONE = ".gone"


class Claim:
    """A new folder that is removed by `release`, with this object, or when the interpreter ends.

    A forked process removes nothing.

    Parameters
    ----------
    place : path
        Folder in which it is made.
    prefix : str
        Prefix of its name.
    mode : int
        Its permissions, less the process's umask.

    Attributes
    ----------
    folder : str
        Its absolute path.

    Raises
    ------
    OSError
        The folder cannot be made.
    """

    def __init__(self, place: str | os.PathLike[str], prefix: str = PREFIX, mode: int = 0o700) -> None:
        prefix = os.path.join(os.path.abspath(place), f"{prefix}{_host()}-{_boot()}-")
        while True:  # again where another process took the folder for abandoned before it was locked
            self.folder, lock = f"{prefix}{uuid4().hex[:8]}", list[Any]()
            # registered first: a signal may end this process before or while the folder is locked
            self.release = weakref.finalize(self, _release, self.folder, lock, os.getpid())
            try:
                os.mkdir(self.folder, mode)
            except OSError:
                self.release.detach()
                raise
            if _taken(self.folder, lock):
                break
            self.release()


def remove_abandoned(place: str | os.PathLike[str], prefix: str = PREFIX) -> None:
    """Remove the `Claim` folders of this host and user whose processes were killed.

    Folders that are in use, or cannot be removed, are left.
    """
    pattern = re.compile(rf"{re.escape(f'{prefix}{_host()}-')}(\w{{8}})-\w{{8}}(\{GONE})?")
    user = os.getuid() if hasattr(os, "getuid") else 0
    with suppress(OSError), os.scandir(os.path.abspath(place)) as entries:
        for entry in list(entries):
            match = pattern.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == user:
                _remove_if_abandoned(entry.path, *match.groups())


def _remove_if_abandoned(folder: str, boot: str, suffix: str | None) -> None:
    lock = None
    if not suffix:
        try:
            lock = _locked(folder, 0)
        except locket.LockError:
            return
        except OSError:  # the disk has no locks, or the folder is another user's
            if boot == _boot():
                return
    _remove(folder, lock)


def _taken(folder: str, lock: list[Any]) -> bool:
    """Lock a new folder, and append the lock to `lock` where the disk has locks; return whether it still exists."""
    try:
        lock.append(_locked(folder, None))
    except OSError:
        return os.path.isdir(folder)
    return os.path.exists(os.path.join(folder, LOCK))


def _locked(folder: str, timeout: float | None) -> Any:
    lock = locket.lock_file(os.path.join(folder, LOCK), timeout=timeout)
    lock.acquire()
    return lock


def _release(folder: str, lock: list[Any], process: int) -> None:
    if os.getpid() != process:
        return
    try:
        _remove(folder, *lock)
    except BaseException:  # a signal that ends this process
        _remove(folder, *lock)
        raise


def _remove(folder: str, lock: Any = None) -> None:
    """Rename a folder, so that a task which still runs finds no place to write, and then remove it.

    The new name tells other processes that nobody needs the folder, should this one be interrupted. The lock is
    released before its file is removed, for file systems where no open file can be removed.
    """
    new_name = folder.removesuffix(GONE) + GONE
    with suppress(OSError):
        os.rename(folder, new_name)
    if lock is not None:
        with suppress(OSError, RuntimeError, locket.LockError):  # it may have been released
            lock.release()
    for name in (new_name, folder):
        shutil.rmtree(name, ignore_errors=True)


@once
def _host() -> str:
    return re.sub(r"[^\w.-]", "_", socket.gethostname(), flags=re.ASCII)[:64]


@once
def _boot() -> str:
    """An id of this boot of the host, where the system has one; elsewhere only locks tell abandoned folders."""
    try:
        return BOOT.read_text()[:8]
    except OSError:
        return "0" * 8
