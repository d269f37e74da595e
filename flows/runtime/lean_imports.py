"""A process that does one thing and ends: what it can go without."""

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

# Read when pyarrow is loaded: no threads for sums that nobody makes, and freed memory goes back at once.
_VARIABLES = {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
_OPTIONAL = ("numpy", "cloudpickle")
# What pyarrow asks `ssl` for: where certificates lie, which its clients of object stores alone want.
_NO_TLS = SimpleNamespace(get_default_verify_paths=lambda: SimpleNamespace(cafile=None, capath=None))
_FILE_SYSTEMS = ("pyarrow._s3fs", "pyarrow._gcsfs", "pyarrow._azurefs", "pyarrow._hdfs")


@contextmanager
def lean_imports(numpy: bool = False) -> Iterator[None]:
    """Enter it before anything large is imported; `numpy` where something in it wants that.

    Garbage collection is rare meanwhile, and none looks at what is left at the end: sessions make no rings
    of objects, and looking for some costs a tenth.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    try:
        if not numpy:
            _load_arrow_alone()
        yield
    finally:
        gc.set_threshold(*before)
        gc.freeze()


def _load_arrow_alone() -> None:
    """pyarrow takes numpy, cloudpickle and its own clients of object stores where they are installed, for
    conversions, functions and addresses that nobody here makes, and numpy takes as long to load as pyarrow:
    https://arrow.apache.org/docs/python/install.html (optional dependencies)."""
    if "numpy" in sys.modules or "pyarrow" in sys.modules:
        return
    hidden: dict[str, object] = sys.modules  # type: ignore[assignment]
    without = [name for name in (*_OPTIONAL, *_FILE_SYSTEMS) if name not in hidden]
    hidden.update(dict.fromkeys(without))  # None is what `import` takes for a module that is not there
    if "ssl" not in hidden:
        hidden["ssl"], without = _NO_TLS, [*without, "ssl"]
    try:
        importlib.import_module("pyarrow.parquet")
    finally:
        for name in without:
            del hidden[name]
