"""The CPU's arrays, frames and kernels: NumPy, pandas, and kernels compiled by Numba."""
