"""File formats: each module turns a file into parts that workers read by themselves.

Every format module has `parts(url, options) -> (list of Part, ids)`, and in OPTIONS, for each of its
formats, which of the options `columns`, `ids` and `skip` it takes; `dasktc.io.files` refuses the others.
"""
