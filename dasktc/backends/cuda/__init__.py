"""cuDF, CuPy, and kernels compiled by NVRTC."""
