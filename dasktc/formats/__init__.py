"""File formats: each module turns a file into parts that workers read by themselves.

Every format module has `parts(url, options) -> (list of Part, ids)`; `dasktc.read` finds out which.
"""
