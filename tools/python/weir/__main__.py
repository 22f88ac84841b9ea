"""`python -m weir` is `weir`."""

from ._programs import weir

weir()
