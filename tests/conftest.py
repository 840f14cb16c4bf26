"""Two busy cores and two torch threads are slower than one: tests run on one thread, on purpose."""

import torch

torch.set_num_threads(1)
