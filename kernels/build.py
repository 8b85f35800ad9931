"""Puts the CUDA sources of this folder into wheels, as the folder `dasktc/kernels`; `pyproject.toml` names the class.

A package that `package-dir` maps to another folder would do the same, but with one setuptools makes editable installs
by an import hook, through which editors and type checkers find no package. Without one, it writes the path of the
checkout into a .pth file, and the kernels are read where they are (`dasktc.backends.kernel_files`).
"""

from pathlib import Path

from setuptools.command.build_py import build_py

__all__ = ["BuildWithKernels"]


class BuildWithKernels(build_py):
    """Copies the kernels beside the modules, unless they stay in the checkout."""

    def run(self) -> None:
        """Build the package."""
        super().run()
        if self.editable_mode:
            return
        folder = Path(self.build_lib, "dasktc", "kernels")
        self.mkpath(str(folder))
        for kernel in sorted(Path("kernels").glob("*.cu*")):
            self.copy_file(str(kernel), str(folder / kernel.name))
