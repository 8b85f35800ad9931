"""SMAT and LightGraphs files, whose first line has their sizes."""

import gzip

import pytest

from dasktc.io.formats import lightgraphs, smat
from tests.support.formats import read, refused

COUNTED_READ = {
    "smat": (smat, "3 3 3\n0 1 1\n1 2 0.5\n2 2 0\n", [(0, 1), (1, 2), (2, 2)]),
    "smat with blanks": (smat, " 3\t3 1\n\n  0  2\t1e3 \n\n", [(0, 2)]),
    "smat, no entries": (smat, "3 3 0\n", []),
    "smat CRLF": (smat, "3 3 1\r\n0 2 1\r\n", [(0, 2)]),
    "lg": (lightgraphs, "3,2,u,graph\n1,2\n3,1\n", [(1, 2), (3, 1)]),
    "lg with more": (lightgraphs, "3,2,d,graph,2,Int64,simplegraph\n1,2\n3,1", [(1, 2), (3, 1)]),
    "lg CRLF": (lightgraphs, "3,1,u,graph\r\n1,3\r\n", [(1, 3)]),
    "lg, no edges": (lightgraphs, "3,0,u,graph\n", []),
}


@pytest.mark.parametrize("name", COUNTED_READ)
def test_counted_lines_are_read(write, name):
    module, text, edges = COUNTED_READ[name]
    assert read(module, write("g", text)) == edges
    assert read(module, write("g", gzip.compress(gzip.compress(text.encode())))) == edges


COUNTED_REFUSED = {
    "smat header": (smat, "3 3\n0 1 1\n", "line 1 ", "'3 3'"),
    "smat empty": (smat, "", "line 1 "),
    "smat negative": (smat, "3 3 -1\n0 1 1\n", "line 1 "),
    "smat rectangular": (smat, "3 4 1\n0 1 1\n", "3 x 4"),
    "smat too few": (smat, "3 3 2\n0 1 1\n", "1 edge ", "says 2"),
    "smat too many": (smat, "3 3 1\n0 1 1\n1 2 1\n", "2 edges", "says 1"),
    "smat beyond": (smat, "3 3 2\n0 1 1\n\n3 1 1\n", "line 4 ", "from 0 to 2"),
    "smat negative id": (smat, "3 3 2\n0 1 1\n-1 1 1\n", "line 3 "),
    "smat nan": (smat, "3 3 2\n0 1 1\nnan 1 1\n", "line 3 ", "'nan 1 1'"),
    "smat word": (smat, "3 3 2\n0 1 1\n0 x 1\n", "line 3 ", "'0 x 1'"),
    "smat no value": (smat, "3 3 2\n0 1 1\n0 2\n", "line 3 "),
    "smat never a value": (smat, "3 3 2\n0 1\n0 2\n", "line 2 "),
    "smat wide": (smat, "3 3 2\n0 1 1\n0 2 1 1\n", "line 3 "),
    "smat always wide": (smat, "3 3 2\n0 1 1 1\n0 2 1 1\n", "line 2 "),
    "smat zero byte": (smat, "3 3 1\n0 1\x002 1\n", "line 2 "),
    "smat beyond 64 bits": (smat, f"3 3 1\n0 {1 << 64} 1\n", "line 2 "),
    "lg header": (lightgraphs, "3,2\n1,2\n3,1\n", "line 1 ", "'V,E,u,name'"),
    "lg kind": (lightgraphs, "3,2,x,graph\n1,2\n3,1\n", "line 1 "),
    "lg too few": (lightgraphs, "3,3,u,graph\n1,2\n3,1\n", "2 edges", "says 3"),
    "lg two graphs": (lightgraphs, "3,2,u,a\n1,2\n3,1\n2,1,u,b\n1,2\n", "line 4 ", "2 1 u b"),
    "lg id 0": (lightgraphs, "3,2,u,graph\n1,2\n0,1\n", "line 3 ", "from 1 to 3"),
    "lg beyond": (lightgraphs, "3,2,u,graph\n1,2\n4,1\n", "line 3 "),
    "lg weighted": (lightgraphs, "3,2,u,graph\n1,2,1.0\n3,1,1.0\n", "line 2 "),
}


@pytest.mark.parametrize("name", COUNTED_REFUSED)
def test_counted_lines_are_refused(write, name):
    module, text, *says = COUNTED_REFUSED[name]
    refused(module, write("g", text), *says)
