"""Imported by the process that workers fork from: what they would each import and load before they count."""

import distributed  # noqa: F401

import dasktc

dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), kernel="hub")
