"""Parses rows of integers on a device: the launches of kernels/text.cu.

Written against a `Device`, as all launches are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dasktc.backends.csr import Array
from dasktc.backends.cuda.device import Device, grid_of
from dasktc.backends.kernel_files import macros

__all__ = ["DeviceText"]


@dataclass(frozen=True)
class DeviceText:
    """Text parser of a device."""

    device: Device

    def rows(self, text: Array, separator: str | None, columns: tuple[int, int]) -> tuple[Array, Array] | None:
        """Parse a text of whole lines.

        Parameters
        ----------
        text : array of uint8, on the device
        separator : str or None
            One character; None: any run of blanks.
        columns : tuple of two int
            Columns of the source's and the target's id, counted from 0.

        Returns
        -------
        source, target : array of int32, or int64 where ids need that
            Equal to those of `io.formats.rows.parse`. None where that has to parse the text: a row does not hold two
            integers of at most 18 digits each, begins with # or %, or holds a quote.
        """
        xp, (first, last) = self.device.array, sorted(columns)
        if first == last or not (separator or "").isascii():
            return None
        if not len(text):
            return xp.empty(0, dtype="int32"), xp.empty(0, dtype="int32")
        step, scan = (macros("text")[name] for name in ("BYTES", "SCAN"))  # bytes per lane, threads of the running sum
        grid, block = grid_of(self.device, "text", (), -(-len(text) // step))
        warps = grid * block // 32
        share = np.int64(-(-len(text) // (32 * step * warps)) * 32 * step)
        text_values, starts = (text, np.int64(len(text)), share), xp.empty(warps + 1, dtype="uint64")
        self.device.launch("text", "text_counts", (("WIDE", 0),), grid, block, (*text_values, starts))
        self.device.launch("text", "text_starts", (("WIDE", 0),), 1, scan, (starts, np.uint32(len(starts))))
        size = int(starts[-1])
        mark = np.uint32(ord("\n" if separator is None else separator))
        places = mark, np.uint32(first), np.uint32(last - first - 1), starts
        for wide, dtype in enumerate(("int32", "int64")):
            pair, flags = [xp.empty(size, dtype=dtype) for _ in range(2)], xp.zeros(2, dtype="uint32")
            values = (*text_values, *places, *pair, flags)
            self.device.launch("text", "text_rows", (("WIDE", wide),), grid, block, values)
            is_odd, is_wide = flags.tolist()
            if is_odd:
                return None
            if is_wide <= wide:
                break
        source, target = pair if columns[0] == first else pair[::-1]
        return source, target
