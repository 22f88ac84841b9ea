"""The jobs of beside_torch.py in PyTorch, in a process of its own that stays between the rounds.

usage: python3 torch_jobs.py DATA INPUTS OUTPUTS HIDDEN   (HIDDEN: 102,51)

Reads lines {"job": NAME, "steps": N}. Answers each with a line: the seconds of N steps from the first
weights on, and the mean loss. The first line it writes has the version, and the ways that it chose.
"""

import itertools
import json
import math
import pathlib
import sys
import time
import warnings

import torch
from libsvm import read_libsvm
from torch import nn
from torch.nn import functional

OPTIMIZER_KINDS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
TRIALS = 4


def fastest(job, kind, known, steps):
    """Takes the fastest way of `kind`, the job's others kept: by the least of several trials, in turn.
    In time of the processor, so that other programs count less."""
    times = {way: [] for way in known}
    for _ in range(1 + TRIALS):
        for way in known:
            job.ways[kind] = way
            times[way].append(job.train(steps)["processor_seconds"] / steps)
    job.trials[kind] = {way: min(of_way[1:]) for way, of_way in times.items()}
    job.ways[kind] = min(known, key=job.trials[kind].get)


class Watch:
    def __init__(self):
        self.begun, self.processor = time.perf_counter(), time.process_time()

    def read(self):
        return {
            "seconds": time.perf_counter() - self.begun,
            "processor_seconds": time.process_time() - self.processor,
        }


def normal(rows, columns, deviation):
    return nn.Parameter(torch.randn(rows, columns) * deviation)


class Batch:
    """A batch of CSR rows, in each form that some way of the first layer reads."""

    def __init__(self, rows, columns):
        self.values = torch.tensor(rows.values, dtype=torch.float32)
        self.indices = torch.tensor(rows.indices)
        self.starts = torch.tensor(rows.starts)
        count = len(rows.starts) - 1
        self.csr = torch.sparse_csr_tensor(self.starts, self.indices, self.values, (count, columns))
        self.turned = self.csr.to_sparse_coo().t().coalesce().to_sparse_csr()
        labels = [rows.label_starts[i + 1] - rows.label_starts[i] for i in range(count)]
        self.label_rows = torch.repeat_interleave(torch.arange(count), torch.tensor(labels))
        self.labels = torch.tensor(rows.labels)
        shares = [1 / n for n in labels for _ in range(n)]
        self.shares = torch.tensor(shares, dtype=torch.float32) / count


class TurnedProduct(torch.autograd.Function):
    """X W, whose gradient uses a copy of X^T made beforehand."""

    @staticmethod
    def forward(context, weights, batch):
        context.batch = batch
        return batch.csr @ weights

    @staticmethod
    def backward(context, gradient):
        return context.batch.turned @ gradient, None


FIRST_LAYERS = {
    "embedding_bag": lambda w, b: functional.embedding_bag(
        b.indices, w, b.starts, mode="sum", per_sample_weights=b.values, include_last_offset=True
    ),
    "sparse.mm": lambda w, b: torch.sparse.mm(b.csr, w),
    "sparse.mm, X^T kept": TurnedProduct.apply,
}


class OwnLoss(torch.autograd.Function):
    """The loss below with a gradient of its own: the probabilities become it in place."""

    @staticmethod
    def forward(context, logits, batch):
        likely = torch.softmax(logits, 1)
        context.save_for_backward(likely)
        context.batch = batch
        return -(likely[batch.label_rows, batch.labels].log() * batch.shares).sum()

    @staticmethod
    def backward(context, gradient):
        (likely,) = context.saved_tensors
        batch = context.batch
        likely.mul_(gradient / likely.shape[0])
        places = (batch.label_rows, batch.labels)
        return likely.index_put_(places, batch.shares * -gradient, accumulate=True), None


def log_softmax_loss(logits, batch):
    logarithms = functional.log_softmax(logits, 1)
    return -(logarithms[batch.label_rows, batch.labels] * batch.shares).sum()


def logsumexp_loss(logits, batch):
    own = (logits[batch.label_rows, batch.labels] * batch.shares).sum()
    return torch.logsumexp(logits, 1).mean() - own


LOSSES = {"own gradient": OwnLoss.apply, "log_softmax": log_softmax_loss, "logsumexp": logsumexp_loss}


class Wide:
    """The wide network: Adam, softmax whose target is uniform over a row's labels."""

    def __init__(self, data, inputs, hidden, outputs, batch_size=128):
        rows = read_libsvm(pathlib.Path(data) / "train.libsvm")
        self.batches = [Batch(part, inputs) for part in rows.batches(batch_size)]
        squares = sum(value * value for value in self.batches[0].values.tolist())
        self.first = math.sqrt(2 * batch_size / squares)
        self.widths = [inputs, *hidden, outputs]
        self.ways = {"input": "embedding_bag", "loss": "own gradient", "Adam": "fused"}
        self.trials = {}

    def choose(self):
        for kind, known in (("input", FIRST_LAYERS), ("loss", LOSSES), ("Adam", OPTIMIZER_KINDS)):
            fastest(self, kind, known, 4)

    def train(self, steps):
        torch.manual_seed(1)
        pairs = list(itertools.pairwise(self.widths))
        deviations = [self.first] + [math.sqrt(2 / width) for width, _ in pairs[1:]]
        weights = [normal(*pair, deviation) for pair, deviation in zip(pairs, deviations)]
        biases = [nn.Parameter(torch.zeros(n)) for _, n in pairs]
        adam = torch.optim.Adam(weights + biases, lr=1e-3, **OPTIMIZER_KINDS[self.ways["Adam"]])
        first_layer, loss_of = FIRST_LAYERS[self.ways["input"]], LOSSES[self.ways["loss"]]
        total = torch.zeros(())
        watch = Watch()
        for step in range(steps):
            batch = self.batches[step % len(self.batches)]
            h = functional.relu(first_layer(weights[0], batch) + biases[0])
            for w, b in zip(weights[1:-1], biases[1:-1]):
                h = functional.relu(torch.addmm(b, h, w))
            loss = loss_of(torch.addmm(biases[-1], h, weights[-1]), batch)
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
            total += loss.detach()
        return {"loss": total.item() / steps, **watch.read()}


class Dense:
    """A job of weir-train compare: y = 1, half the mean square, SGD at 0.005."""

    def __init__(self, widths, batch_size, kept):
        self.widths, self.rows, self.ways, self.trials = widths, batch_size, {"SGD": "fused"}, {}
        self.kept = [torch.randn(batch_size, widths[0]) for _ in range(kept)]
        self.ones = torch.ones(batch_size, 1)

    def choose(self):
        fastest(self, "SGD", OPTIMIZER_KINDS, 200 if self.kept else 1)

    def train(self, steps):
        torch.manual_seed(1)
        pairs = list(itertools.pairwise(self.widths))
        weights = [normal(*pair, math.sqrt(2 / pair[0])) for pair in pairs]
        biases = [nn.Parameter(torch.zeros(n)) for _, n in pairs]
        sgd = torch.optim.SGD(weights + biases, lr=0.005, **OPTIMIZER_KINDS[self.ways["SGD"]])
        total = torch.zeros(())
        watch = Watch()
        for step in range(steps):
            if self.kept:
                h = self.kept[step % len(self.kept)]
            else:
                h = torch.randn(self.rows, self.widths[0])
            for w, b in zip(weights[:-1], biases[:-1]):
                h = torch.relu(torch.addmm(b, h, w))
            loss = 0.5 * functional.mse_loss(torch.addmm(biases[-1], h, weights[-1]), self.ones)
            sgd.zero_grad(set_to_none=True)
            loss.backward()
            sgd.step()
            total += loss.detach()
        return {"loss": total.item() / steps, **watch.read()}


def main(words):
    data, inputs, outputs, hidden = words
    warnings.filterwarnings("ignore")  # CSR tensors are called new
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    jobs = {
        "wide": Wide(data, int(inputs), [int(width) for width in hidden.split(",")], int(outputs)),
        "d2l": Dense([512, 2048, 512, 1], 1024, 0),
        "small": Dense([512, 256, 128, 1], 32, 64),
    }
    for job in jobs.values():
        job.choose()
    chosen = {name: {"ways": job.ways, "trials": job.trials} for name, job in jobs.items()}
    print(json.dumps({"version": torch.__version__, "jobs": chosen}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(jobs[asked["job"]].train(asked["steps"])), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
