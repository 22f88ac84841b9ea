"""Generates text with caches that grow, as kv_cache.py does, by a model of eight layers."""

import functools

import gpt
import kv_cache
import recorder

STEPS = 40
SIZES = kv_cache.Sizes(width=512, heads=8, layers=8, places=2048, batch=12, vocabulary=gpt.BYTES)
run = functools.partial(kv_cache.run, sizes=SIZES)

if __name__ == "__main__":
    recorder.main("small_kv_wide", __doc__, run, steps=STEPS)
