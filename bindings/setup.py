"""Packs what CMake has built as a wheel. scripts/make_wheel.sh calls it in a folder of its own."""
import os
import pathlib

from setuptools import Distribution, setup


class BuiltDistribution(Distribution):
    """Has a compiled module, though setuptools does not compile it: the wheel is of one platform."""

    def has_ext_modules(self):
        return True


setup(
    name="stepsim",
    version=os.environ["STEPSIM_VERSION"],
    description="simulates training and serving of large language models on clusters",
    long_description=pathlib.Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=["stepsim"],
    package_data={"stepsim": ["*.so", "*.pyi", "py.typed", "lib/*"]},
    python_requires=">=3.11",
    distclass=BuiltDistribution,
)
