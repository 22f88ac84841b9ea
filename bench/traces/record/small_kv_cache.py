"""Generates text with caches that grow, as kv_cache.py does, by a model of six layers."""

import functools

import gpt
import kv_cache
import recorder

STEPS = 40
SIZES = kv_cache.Sizes(width=384, heads=6, layers=6, places=2048, batch=8, vocabulary=gpt.BYTES)
run = functools.partial(kv_cache.run, sizes=SIZES)

if __name__ == "__main__":
    recorder.main("small_kv_cache", __doc__, run, steps=STEPS)
