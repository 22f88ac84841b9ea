"""Trains a GPT of six layers as small_gpt_growing.py does, every block's activations computed again in the
backward pass."""

import functools

import recorder
import small_gpt_growing

STEPS = small_gpt_growing.STEPS
run = functools.partial(small_gpt_growing.run, recompute=True)

if __name__ == "__main__":
    recorder.main("small_gpt_recompute", __doc__, run, steps=STEPS)
