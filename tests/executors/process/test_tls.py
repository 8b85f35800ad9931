"""Certificates that are no files."""

import os

import pytest

from dasktc.errors import InputError
from dasktc.executors.process.tls import security_of


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["ca_file", "cert", "key"])
def test_certificates_are_regular_files(tmp_path, name):
    os.mkfifo(tmp_path / "fifo")
    for value, why in ((tmp_path / "fifo", "is no regular file"), (5, "5 is of type int"), ("", "is no path")):
        with pytest.raises(InputError, match=rf"tls_(client_)?{name}=.*{why}"):
            security_of(**({"ca_file": None, "cert": None, "key": None} | {name: value}))
