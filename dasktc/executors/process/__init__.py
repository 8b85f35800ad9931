"""What belongs to one process: signals, keyboard, TLS, UCX, GPUs, paths, environment and usage."""
