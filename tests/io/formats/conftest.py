"""Defines the fixtures that tests of formats share."""

import pytest


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to
