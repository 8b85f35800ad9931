"""Counts on clusters with TLS: real processes, two hosts, and every wrong use of certificates."""

import json
import logging
import os
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

from dasktc import triangle_count
from dasktc.errors import ClusterError, InputError
from dasktc.executors.connect import connect
from dasktc.executors.place import Place
from dasktc.executors.process.tls import security_of
from tests.support.keywords import keywords
from tests.support.processes import Authority, apart_from_page, cluster_of, dasktc
from tests.support.tiers import some

TRIANGLE = ([0, 1, 2], [1, 2, 0])
GRAPH = str(Path(__file__).parents[1] / "data" / "email-Eu-core.csv.gz")
TRIANGLES = 105_461


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return Authority.new(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    return Authority.new(tmp_path_factory.mktemp("tls") / "theirs")


@pytest.fixture(scope="module")
def encrypted(ours, tmp_path_factory):
    """A scheduler and two workers that accept only TLS, on two addresses of this host."""
    with cluster_of(tmp_path_factory.mktemp("cluster"), ("127.0.0.2", "127.0.0.3"), ours.options) as found:
        yield found


@pytest.fixture(scope="module")
def address(ours):
    """A scheduler and a worker in this process that accept only TLS."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tls://", security=security(ours),
        dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address


def security(authority):
    return security_of(authority.ca, authority.cert, authority.key)


def check_count(authority, file, within=()):
    """Count on that cluster by the command line, and check the result."""
    options = ["--scheduler-file", str(file), *authority.options]
    spread = ["--partition", "hash2d", "--parts", "2", "--json", "--verify"]

    done = dasktc("count", GRAPH, *options, *spread, within=within)
    assert (done.returncode, apart_from_page(done.stderr)) == (0, "")
    found = json.loads(done.stdout)
    assert (found["triangles"], found["tasks"], found["verified"], found["workers"]) == (TRIANGLES, 8, 8, 2)


@pytest.mark.slow
def test_two_hosts_count_with_tls(encrypted, ours):
    """With the command line, a scheduler file, and workers on two addresses."""
    check_count(ours, encrypted.file)
    with connect(Place(scheduler_file=str(encrypted.file), security=security(ours))) as tasks:
        workers = list(tasks.client.ncores())
    assert sorted(worker.rpartition(":")[0] for worker in workers) == ["tls://127.0.0.2", "tls://127.0.0.3"]


@contextmanager
def namespaces():
    """Two network namespaces joined by a cable: their addresses, and the command prefix of each."""
    names = [f"dasktc-{os.getpid()}-{side}" for side in "ab"]

    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)

    with ExitStack() as undo:
        for name in names:
            ip("netns", "add", name)
            undo.callback(ip, "netns", "del", name)
        ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable", "netns", names[1])
        for number, name in enumerate(names, 1):
            for setting in (("addr", "add", f"10.201.77.{number}/24", "dev", "cable"), ("link", "set", "cable", "up")):
                ip("-n", name, *setting)
            ip("-n", name, "link", "set", "lo", "up")
        yield ("10.201.77.1", "10.201.77.2"), [("ip", "netns", "exec", name) for name in names]


@pytest.mark.slow
def test_two_hosts_in_network_namespaces_count_with_tls(ours, tmp_path):
    """Only the cable joins them; the client is on the second."""
    with ExitStack() as stack:
        try:
            hosts, within = stack.enter_context(namespaces())
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no network namespaces here: {getattr(error, 'stderr', None) or error}")
        found = stack.enter_context(cluster_of(tmp_path, hosts, ours.options, within))
        check_count(ours, found.file, within[1])


@pytest.mark.slow
def test_python_takes_a_security_or_a_client(ours, address):
    assert int(triangle_count(TRIANGLE, client=Place(scheduler=address, security=security(ours)))) == 1
    without_scheme = address.removeprefix("tls://")
    assert int(triangle_count(TRIANGLE, client=Place(scheduler=without_scheme, security=security(ours)))) == 1
    with Client(address, security=security(ours), set_as_default=False) as client:
        assert int(triangle_count(TRIANGLE, client)) == 1


@pytest.mark.slow
def test_dask_s_own_configuration_is_used(ours, address):
    """As set by DASK_ variables; for a client, a client's certificate suffices."""
    names = {"CA_FILE": ours.ca, "CLIENT__CERT": ours.cert, "CLIENT__KEY": ours.key}
    environment = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": file for name, file in names.items()}
    done = dasktc("count", GRAPH, "--scheduler", address, "--quiet", **environment)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (str(TRIANGLES), "", 0)


@pytest.mark.slow
def test_local_workers_use_the_certificates_too(ours):
    """A scheduler that is started here accepts nobody without one."""
    with connect(Place(workers=1, security=security(ours))) as tasks:
        assert tasks.client.scheduler.address.startswith("tls://")
        assert tasks.gather([tasks.submit("add", sum, [1, 2])]) == [3]


# Wrong certificates: one line, at once


def refused(kind, match, **place):
    with pytest.raises(kind, match=match) as error:
        triangle_count(TRIANGLE, **keywords(**place))
    assert "\n" not in str(error.value)


@pytest.mark.timeout(20)
def test_no_certificate_is_refused(address):
    refused(
        ClusterError, r"is encrypted, and there is no certificate to show: give .*\(tls_ca_file=", scheduler=address
    )


@pytest.mark.timeout(20)
def test_a_certificate_of_another_authority_is_refused(address, theirs):
    refused(
        ClusterError,
        r"TLS with tls://\S+ failed \(certificate verify failed\): our authority did not sign the scheduler's",
        scheduler=address,
        security=security(theirs),
    )


@pytest.mark.timeout(20)
def test_a_certificate_that_the_scheduler_does_not_trust_is_refused(address, ours, theirs):
    mixed = security_of(ours.ca, theirs.cert, theirs.key)
    refused(ClusterError, r"failed \(.*alert.*\): the scheduler refuses our", scheduler=address, security=mixed)


@pytest.mark.timeout(20)
def test_tls_on_one_side_alone_is_refused(cluster, ours, address):
    plain = cluster.scheduler_address
    refused(ClusterError, "does not use TLS", scheduler=plain.replace("tcp", "tls"), security=security(ours))
    refused(ClusterError, "is not encrypted, and encryption is asked for", scheduler=plain, security=security(ours))
    refused(ClusterError, "or it uses TLS", scheduler=address.replace("tls", "tcp"))


@pytest.mark.parametrize("option", some(["ca-file", "cert", "key"], lambda option: option == "key"))
def test_files_that_are_not_there_are_refused(option, ours):
    given = dict(zip(ours.options[::2], ours.options[1::2], strict=True)) | {f"--tls-{option}": "/nowhere.pem"}
    done = dasktc(
        "count", GRAPH, "--scheduler", "tls://127.0.0.1:1", *(text for pair in given.items() for text in pair)
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"dasktc: error: --tls-{option} /nowhere.pem cannot be read: ")


def test_files_that_do_not_fit_are_refused(ours, theirs, tmp_path):
    refused(
        InputError,
        r"TLS files cannot be used \(key values mismatch\)",
        scheduler="tls://x:1",
        security=security_of(ours.ca, ours.cert, theirs.key),
    )
    (tmp_path / "text.pem").write_text("my thesis\n")
    text = str(tmp_path / "text.pem")
    refused(InputError, "TLS files cannot be used", scheduler="tls://x:1", security=security_of(text, text, None))
    refused(
        InputError,
        "without both an authority and a certificate",
        scheduler="x:1",
        security=security_of(ours.ca, None, None),
    )
    refused(InputError, "security is a bool", scheduler="tls://x:1", security=True)


def test_one_file_may_hold_certificate_and_key(ours, address, tmp_path):
    both = tmp_path / "both.pem"
    both.write_text(Path(ours.cert).read_text() + Path(ours.key).read_text())
    assert (
        int(triangle_count(TRIANGLE, client=Place(scheduler=address, security=security_of(ours.ca, both, None)))) == 1
    )


def test_without_options_nothing_is_asked_for():
    assert security_of(None, None, None) is None
    assert not Security().require_encryption
