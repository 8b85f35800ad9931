"""Readers of file formats: each module cuts files of its format into parts that workers read independently.

A format module has a function `parts(url, options)`, which returns a list of Part and the type of their ids, and
is registered in `dasktc.io.files.FORMATS`. Formats whose header states sizes share the module `entries`.
"""
