"""TLS between this process and a Dask cluster, with certificates from options or from Dask's own configuration.

Dask checks both ends: the same authority must have signed the scheduler's certificate and ours. Without certificates,
anyone who reaches a scheduler's port can run code on its workers.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dasktc.errors import ClusterError, InputError
from dasktc.executors.process.paths import check_regular
from dasktc.options import path_text
from dasktc.wording import advice, option

__all__ = ["checked", "greet", "security_of"]

Path = str | os.PathLike[str]
OPTIONS = advice("tls_ca_file", "tls_client_cert", "tls_client_key")


def security_of(ca_file: Path | None, cert: Path | None, key: Path | None) -> Any:
    """Make a `distributed.Security` from files in PEM format; None if none of the three is given.

    They are the certificate of the authority, our certificate, and its key where the certificate's file does not
    contain it. A cluster started here also uses the last two for its scheduler and workers. Missing ones come from
    Dask's configuration.
    """
    settings = {"tls_ca_file": ca_file, "tls_client_cert": cert, "tls_client_key": key}
    files = {name: path_text(name, file) for name, file in settings.items() if file is not None}
    if not files:
        return None
    for name, file in files.items():
        check_regular(option(name, file), file)
        if not os.access(file, os.R_OK):
            raise InputError(f"{option(name, file)} cannot be read: it is not there, or not ours; check it")
    from distributed.security import Security

    roles = ("client", "scheduler", "worker")
    certs = {f"tls_{role}_cert": os.fspath(cert) for role in roles if cert is not None}
    keys = {f"tls_{role}_key": os.fspath(key) for role in roles if key is not None}
    ca = {} if ca_file is None else {"tls_ca_file": os.fspath(ca_file)}
    return Security(require_encryption=True, **ca, **certs, **keys)


def checked(security: Any) -> Any:
    """Check and return a `distributed.Security`, by default that of Dask's configuration.

    What is no `Security`, and one whose files cannot be used, are refused (InputError).
    """
    from distributed.security import Security

    security = Security() if security is None else security
    if not isinstance(security, Security):
        raise InputError(
            f"security is a {type(security).__name__}: a distributed.Security is needed; make one of your certificates"
        )
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InputError(
            f"the TLS files cannot be used ({_why(error)}): one is missing, is not in PEM format, or the key is "
            f"another certificate's; check {OPTIONS}, or distributed.comm.tls in Dask's configuration"
        ) from error
    if security.require_encryption and context is None:
        raise InputError(
            f"encryption is asked for without both an authority and a certificate: TLS needs them; give {OPTIONS}, or "
            "set distributed.comm.tls in Dask's configuration"
        )
    return security


def greet(address: str, security: Any, seconds: float) -> None:
    """Connect to a scheduler within a time limit, because Client would wait for ever for one that does not answer.

    Raises
    ------
    ClusterError
        The two do not trust each other's certificates, or only one of them uses TLS.
    OSError, ValueError, TimeoutError
        No scheduler answers.
    """
    context = security.get_connection_args("client")["ssl_context"]
    if address.startswith("tls://"):
        _shake_hands(address, context, seconds)
    elif security.require_encryption:
        raise ClusterError(
            f"{address} is not encrypted, and encryption is asked for: give the scheduler's tls:// address"
        )
    with ThreadPoolExecutor(1) as thread:  # a notebook's own thread has an event loop already
        thread.submit(asyncio.run, _exchange(address, security, seconds)).result()


async def _exchange(address: str, security: Any, seconds: float) -> None:
    from distributed.comm import connect

    async with asyncio.timeout(seconds):
        comm = await connect(address, timeout=seconds, **security.get_connection_args("client"))
        await comm.close()


def _shake_hands(address: str, context: ssl.SSLContext | None, seconds: float) -> None:
    """Try a TLS handshake, to report at once why it fails: Dask would retry until its timeout, without a reason.

    With TLS 1.3 the other side's refusal arrives when something is read; a scheduler speaks first.
    """
    if context is None:
        raise ClusterError(
            f"{address} is encrypted, and there is no certificate to show: give {OPTIONS}, or set "
            "distributed.comm.tls in Dask's configuration"
        )
    from distributed.comm import get_address_host_port

    with _connected(get_address_host_port(address), seconds) as connection:
        try:
            with context.wrap_socket(connection) as stream:
                stream.recv(1)
        except ssl.SSLError as error:
            raise ClusterError(f"TLS with {address} failed ({_why(error)}): {_likely(error)}") from error


def _connected(place: tuple[str, int], seconds: float) -> socket.socket:
    """Open a connection; a scheduler that is just starting gets time to accept it."""
    ends = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(place, timeout=seconds)
        except OSError:
            if time.monotonic() > ends:
                raise
        time.sleep(0.1)


def _why(error: Exception) -> str:
    return " ".join(str(getattr(error, "reason", None) or error).split()).replace("_", " ").lower()


def _likely(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        request = advice("tls_ca_file")
        return f"our authority did not sign the scheduler's certificate; give the authority that did with {request}"
    if "ALERT" in (error.reason or ""):
        request = advice("tls_client_cert", "tls_client_key")
        return f"the scheduler refuses our certificate; give one that its authority signed with {request}"
    return "the scheduler does not use TLS; give its tcp:// address, or start it with certificates"
