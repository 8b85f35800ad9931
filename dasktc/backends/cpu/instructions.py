"""Machine instructions that Numba has no Python name for, callable from kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = [
    "LEVELS", "LOWER", "WINDOW", "add_common", "bit_length", "byte_mask", "carry_up", "eight_bytes", "ones",
    "prefetch", "scalar", "trailing_zeros",
]  # fmt: skip

LANES = 8
"""64-bit words in a vector, which is a block of 512 ids."""
LOWER, LEVELS = 4, 12
"""Bit planes of the counters to which single sets are added, and of the counters to which those are carried over.

Bit i of plane p has the weight 2^p in the counter of id i."""
WINDOW = 32
"""Bytes of text that are compared together."""


def _instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast(Callable[..., Any], intrinsic(function))


def _function(module: Any, kind: Any, name: str) -> Any:
    """The function of this name in a module of LLVM, declared on first use."""
    return module.globals.get(name) or ir.Function(module, kind, name)


@_instruction
def ones(_: Any, word: Any) -> Any:
    """Count the bits set in a 64-bit word."""
    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])


@_instruction
def trailing_zeros(_: Any, word: Any) -> Any:
    """Count the zeros below the lowest set bit of a 64-bit word, which must not be 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), generate


@_instruction
def bit_length(_: Any, word: Any) -> Any:
    """Number of bits up to the highest set bit of a 64-bit word; 0 of 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sub(args[0].type(64), builder.ctlz(args[0], ir.IntType(1)(0)))

    return types.uint64(types.uint64), generate


@_instruction
def scalar(_: Any, word: Any) -> Any:
    """Pass a 64-bit word through, hidden from the compiler.

    A loop over table[scalar(x)] stays a loop of plain loads; LLVM would turn it into vectors of gathers, which are
    slower.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        return builder.asm(ir.FunctionType(kind, [kind]), "", "=r,0", [args[0]], False)

    return types.uint64(types.uint64), generate


@_instruction
def prefetch(_: Any, array: Any, place: Any) -> Any:
    """Prefetch the cache line of array[place], which need not exist."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = _function(builder.module, kind, "llvm.prefetch.p0i8")
        read, keep, data_cache = number(0), number(3), number(1)
        builder.call(fetch, [builder.bitcast(builder.gep(data, [args[1]]), byte), read, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


def _bytes(context: Any, builder: Any, signature: Any, args: Any, kind: Any) -> Any:
    """Load bytes of an array from a place on, as a value of another type."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.load(builder.bitcast(builder.gep(data, [args[1]]), kind.as_pointer()), align=1, typ=kind)


@_instruction
def eight_bytes(_: Any, text: Any, place: Any) -> Any:
    """Load eight bytes from a place on as a 64-bit word, the first as its lowest byte.

    All machines for which Numba is built store the lowest byte first.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _bytes(context, builder, signature, args, ir.IntType(64))

    return types.uint64(text, types.uint64), generate


@_instruction
def byte_mask(_: Any, text: Any, place: Any, least: Any, count: Any) -> Any:
    """Compare the WINDOW bytes from a place on with `count` values from `least` on; bit i is set where byte i is one.

    `count` is at least 1.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, word = ir.IntType(8), ir.IntType(64)
        kind = ir.VectorType(byte, WINDOW)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), WINDOW), [0] * WINDOW)

        def broadcast(value: Any) -> Any:
            vector = builder.insert_element(ir.Constant(kind, ir.Undefined), builder.trunc(value, byte), word(0))
            return builder.shuffle_vector(vector, vector, lanes)

        offsets = builder.sub(_bytes(context, builder, signature, args, kind), broadcast(args[2]))
        mask = builder.icmp_unsigned("<", offsets, broadcast(args[3]))
        return builder.zext(builder.bitcast(mask, ir.IntType(WINDOW)), word)

    return types.uint64(text, types.uint64, types.uint64, types.uint64), generate


class _Vectors:
    """Access to vectors of LANES words in arrays of words, within one call of an intrinsic."""

    kind = ir.VectorType(ir.IntType(64), LANES)

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self._context, self._builder, self._signature, self._args = context, builder, signature, args

    def places(self, argument: int, first: int, count: int) -> list[Any]:
        """Pointers to `count` consecutive vectors in an array argument, from the word that another argument names."""
        builder, array = self._builder, self._context.make_array(self._signature.args[argument])
        data = array(self._context, builder, self._args[argument]).data
        start = builder.gep(data, [self._args[first]])
        word = ir.IntType(64)
        return [
            builder.bitcast(builder.gep(start, [word(LANES * number)], source_etype=word), self.kind.as_pointer())
            for number in range(count)
        ]

    def load(self, place: Any) -> Any:
        return self._builder.load(place, align=8, typ=self.kind)

    def store(self, value: Any, place: Any) -> None:
        self._builder.store(value, place, align=8)

    def ones(self, vector: Any) -> Any:
        """Number of bits set in all words of a vector."""
        module, word = self._builder.module, ir.IntType(64)
        name = f"v{LANES}i64"
        count = _function(module, ir.FunctionType(self.kind, [self.kind]), f"llvm.ctpop.{name}")
        add = _function(module, ir.FunctionType(word, [self.kind]), f"llvm.vector.reduce.add.{name}")
        return self._builder.call(add, [self._builder.call(count, [vector])])


@_instruction
def add_common(_: Any, bits: Any, at: Any, others: Any, base: Any, planes: Any, first: Any) -> Any:
    """Add 1 to the counters of the ids in both of two sets, LANES words each; return the number of these ids.

    `planes` has LOWER vectors from `first` on. Overflows of counters are not reported.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        common = builder.and_(*(vectors.load(*vectors.places(array, array + 1, 1)) for array in (0, 2)))
        carry = common
        for place in vectors.places(4, 5, LOWER):
            plane = vectors.load(place)
            vectors.store(builder.xor(plane, carry), place)
            carry = builder.and_(plane, carry)
        return vectors.ones(common)

    return types.uint64(bits, types.uint64, others, types.uint64, planes, types.uint64), generate


@_instruction
def carry_up(_: Any, planes: Any, first: Any, upper: Any, at: Any) -> Any:
    """Add the counters in LOWER planes to those in LEVELS planes, LANES words each, and reset the former."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        none = ir.Constant(vectors.kind, [0] * LANES)
        carry, lower = none, vectors.places(0, 1, LOWER)
        for level, place in enumerate(vectors.places(2, 3, LEVELS)):
            plane = vectors.load(place)
            half = builder.xor(plane, carry)
            if level < LOWER:
                addend = vectors.load(lower[level])
                vectors.store(none, lower[level])
                vectors.store(builder.xor(half, addend), place)
                carry = builder.or_(builder.and_(plane, carry), builder.and_(half, addend))
            else:
                vectors.store(half, place)
                carry = builder.and_(plane, carry)
        return context.get_dummy_value()

    return types.void(planes, types.uint64, upper, types.uint64), generate
