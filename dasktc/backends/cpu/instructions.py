"""Machine instructions that Numba has no Python name for, callable from kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["ones", "prefetch", "scalar"]


def _instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast(Callable[..., Any], intrinsic(function))


@_instruction
def ones(_: Any, word: Any) -> Any:
    """Count the bits set in a 64-bit word."""
    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])


@_instruction
def scalar(_: Any, word: Any) -> Any:
    """Pass a 64-bit word through, unseen by the compiler.

    A loop over table[scalar(x)] stays a loop of plain loads. As a vector of gathers, which LLVM
    would make of it, it is slower.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        return builder.asm(ir.FunctionType(kind, [kind]), "", "=r,0", [args[0]], False)

    return types.uint64(types.uint64), generate


@_instruction
def prefetch(_: Any, array: Any, at: Any) -> Any:
    """Ask for the cache line of array[at], which need not exist."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        read, keep, data_cache = number(0), number(3), number(1)
        builder.call(fetch, [builder.bitcast(builder.gep(data, [args[1]]), byte), read, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate
