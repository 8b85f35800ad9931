"""Pandas, NumPy, and kernels compiled by Numba."""
