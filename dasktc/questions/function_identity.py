"""What a caller's function is, as far as a later process can tell: its code, and the values that the code uses.

A survey that goes on from a checkpoint adds results of a function of this process to those of an earlier one, and
nothing proves that two functions of Python are equal. Compared are a function's compiled code, its defaults, what it
encloses, and what it reads from its own module: values, and functions and classes of that module in the same way, of
these the methods, properties and constants. Modules, and classes and functions of other modules, are compared by name,
so changes in them are not seen; comments, line numbers and files do not count. Another version of Python compiles to
other code.
"""

from __future__ import annotations

import dis
import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import isbuiltin
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from dasktc.errors import InputError, shown
from dasktc.questions.caller_function import name_of

__all__ = ["identity"]

CONSTANTS = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, type(None))
"""Types of class attributes that are compared."""
LONGEST_NAME = 100
"""Characters of a function's name that are kept."""


def identity(*functions: Callable[..., Any]) -> str:
    """Return the names of functions, and a digest of what can be compared of them, equal in every process.

    Raises
    ------
    InputError
        A value that a function uses cannot be compared: pickles of it differ between processes, or there is none.
    """
    names = ", ".join(name_of(function) for function in functions)
    text = repr([_Description(function).of(function) for function in functions])
    return f"{names[:LONGEST_NAME]} {hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


class _Description:
    """Describes a function, and what it uses, by texts and nested tuples."""

    def __init__(self, function: Any) -> None:
        self._name = name_of(function)
        self._module = getattr(_function(function), "__module__", None)
        self._known: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return type(value).__name__, repr(value)
        is_own = getattr(value, "__module__", None) == self._module
        if isinstance(value, list | dict) or (is_own and hasattr(value, "__dict__")):
            if id(value) in self._known:  # it may contain or call itself
                return "again", getattr(value, "__qualname__", type(value).__qualname__)
            self._known[id(value)] = value
        if isinstance(value, tuple | list):
            return type(value).__name__, *map(self.of, value)
        if isinstance(value, set | frozenset):  # their order depends on the process
            return type(value).__name__, *sorted(repr(self.of(entry)) for entry in value)
        if isinstance(value, Mapping):
            return type(value).__name__, *((self.of(key), self.of(entry)) for key, entry in value.items())
        if isinstance(value, partial):
            return "partial", self.of(value.func), self.of(value.args), self.of(value.keywords)
        if isinstance(value, MethodType):
            return "method", self.of(value.__func__), self.of(value.__self__)
        if isinstance(value, ModuleType):
            return "module", value.__name__
        if isinstance(value, FunctionType) and is_own:
            return self._of_function(value)
        if isinstance(value, type) and is_own:
            return self._of_class(value)
        if isinstance(value, type | FunctionType) or isbuiltin(value):
            return "name", str(value.__module__), value.__qualname__
        if isinstance(inner := getattr(value, "__wrapped__", None), FunctionType):  # compiled by Numba, for one
            return type(value).__qualname__, self.of(inner)
        if is_own and hasattr(value, "__dict__"):
            return "object", self.of(type(value)), self.of(vars(value))
        return type(value).__qualname__, self._token(value)

    def _of_class(self, kind: type) -> Any:
        members = []
        for name, member in sorted(vars(kind).items()):
            if isinstance(member, property):
                members.append((name, self.of((member.fget, member.fset))))
            elif isinstance(member, staticmethod | classmethod):
                members.append((name, self.of(member.__func__)))
            elif isinstance(member, FunctionType) or (isinstance(member, CONSTANTS) and not name.startswith("__")):
                members.append((name, self.of(member)))
        return "class", kind.__qualname__, *map(self.of, kind.__bases__), *members

    def _of_function(self, function: FunctionType) -> Any:
        defaults = function.__defaults__, function.__kwdefaults__
        return "function", self._of_code(function.__code__), self.of(defaults), *map(self.of, _values(function))

    def _of_code(self, code: CodeType) -> Any:
        constants = [self._of_code(c) if isinstance(c, CodeType) else self.of(c) for c in code.co_consts]
        return code.co_code.hex(), code.co_exceptiontable.hex(), code.co_names, code.co_freevars, *constants

    def _token(self, value: Any) -> str:
        from dask.tokenize import TokenizationError, tokenize

        try:
            token: str = tokenize(value, ensure_deterministic=True)
        except TokenizationError:
            raise InputError(
                f"function {self._name} uses {shown(value)}, of type {type(value).__qualname__}, which a checkpoint "
                "cannot compare with that of a later run: make it in the function, or leave out checkpoint"
            ) from None
        return token


def _function(function: Any) -> Any:
    """Return the function within partial functions and methods."""
    while isinstance(function, partial | MethodType):
        function = function.func if isinstance(function, partial) else function.__func__
    return getattr(function, "__wrapped__", function)


def _values(function: FunctionType) -> Iterator[Any]:
    """Yield what a function encloses, and the global variables that its code reads, by name."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            yield name, "no value"
    for name in sorted(set(_global_names(function.__code__))):
        if name in function.__globals__:  # else it is built in, or not there yet
            yield name, function.__globals__[name]


def _global_names(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
