"""The GPU's arrays, frames and kernels: CuPy, cuDF, and kernels compiled by NVRTC."""
