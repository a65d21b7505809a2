"""Stands in for torchvision in the test environment of vLLM on a CPU.

torchvision on PyPI is built for CUDA and cannot be imported beside a CPU build of PyTorch. vLLM
imports the names of a few of its functions with Qwen3.5, for images; none is called for text.
"""

import enum
import sys
import types

__version__ = "0"


class InterpolationMode(enum.Enum):
    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def _missing(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})


for _path in (
    "io",
    "transforms",
    "transforms.functional",
    "transforms.v2",
    "transforms.v2.functional",
):
    _module = types.ModuleType(f"{__name__}.{_path}")
    _module.__dict__.update(__getattr__=_missing, InterpolationMode=InterpolationMode)
    sys.modules[_module.__name__] = _module
    _parent, _, _name = _module.__name__.rpartition(".")
    setattr(sys.modules[_parent], _name, _module)
