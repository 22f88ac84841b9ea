#include "bench/run_ahead/cases.hpp"

#include <algorithm>
#include <cmath>

namespace weir::run_ahead {
namespace {

Time us(double microseconds) { return Time(std::llround(microseconds * 1000)); }

/// Log-normal with this mean.
Time varied(Random& random, double mean, double sigma) {
  return us(mean * std::exp(sigma * random.normal() - sigma * sigma / 2));
}

CaseBatch batch(Time load, Time first, Time second = {}) {
  return {.load = load,
          .before = us(50),
          .between = us(50),
          .copy = us(100),
          .first = first,
          .second = second,
          .memory = kib(1536)};
}

CaseBatch with_copy(CaseBatch batch, Time copy, Bytes memory) {
  batch.copy = copy;
  batch.memory = memory;
  return batch;
}

CaseBatch of_kind(CaseBatch batch, std::uint64_t kind, Bytes memory = kib(1536)) {
  batch.kind = "kind " + std::to_string(kind);
  batch.memory = memory;
  return batch;
}

CaseBatch read_if(CaseBatch batch, bool read) {
  batch.read = read;
  return batch;
}

CaseBatch in_phases(std::uint64_t index) {
  return index / 100 % 2 == 1 ? with_copy(batch(us(4000), us(2000)), us(100), kib(1024))
                              : with_copy(batch(us(500), us(4000)), us(100), kib(2560));
}

CaseBatch in_three_phases(std::uint64_t index) {
  switch (index / 50 % 3) {
    case 0:
      return batch(us(200), us(3000));
    case 1:
      return with_copy(batch(us(6000), us(2000)), us(100), kib(768));
    default:
      return with_copy(batch(us(1500), us(1500)), us(100), kib(3584));
  }
}

CaseBatch in_growing_bursts(std::uint64_t index) {
  const std::uint64_t length = 8 + index / 64 * 8 % 80;
  const bool is_last = index % length == length - 1;
  return batch(us(is_last ? static_cast<double>(length) * 900 : 100), us(1300));
}

CaseBatch with_pause(std::uint64_t index) {
  CaseBatch paused = batch(us(300), us(2500));
  paused.between = us(index % 25 == 24 ? 30'000 : 200);
  return paused;
}

CaseBatch alternating(Time load, Time compute, std::uint64_t index) {
  return index % 2 == 0 ? batch(load, compute) : batch(load, {}, compute);
}

CaseBatch of_thread(CaseBatch batch) {
  batch.new_thread = true;
  return batch;
}

CaseBatch linked(CaseBatch batch) {
  batch.linked = true;
  return batch;
}

const std::vector<Case>& all() {
  using R = Random;
  using I = std::uint64_t;
  using P = std::size_t;
  static const std::vector<Case> kAll{
      {"steady", "equal batches of 2 ms, loaded in 0.2 ms", 1,
       [](R&, I, P) { return batch(us(200), us(2000)); }},
      {"slow-host", "equal batches of 2 ms, loaded in 2.5 ms", 1,
       [](R&, I, P) { return batch(us(2500), us(2000)); }},
      {"lognormal", "loads of 1.8 ms and computes of 2.5 ms, sigma 1", 1,
       [](R& r, I, P) { return batch(varied(r, 1800, 1), varied(r, 2500, 1)); }},
      {"lognormal-1.5", "loads of 2.2 ms and computes of 2.5 ms, sigma 1.5", 1,
       [](R& r, I, P) { return batch(varied(r, 2200, 1.5), varied(r, 2500, 1.5)); }},
      {"bimodal", "1 load in 40 takes 60 ms, 1 compute in 20 takes 20 ms", 1,
       [](R&, I i, P) {
         return batch(us(i % 40 == 39 ? 60'000 : 1200), us(i % 20 == 7 ? 20'000 : 1500));
       }},
      {"bimodal-random", "2% of the loads take 50 ms, 5% of the computes 25 ms", 1,
       [](R& r, I, P) {
         const Time load = us(r.uniform() < 0.02 ? 50'000 : 800);
         return batch(load, us(r.uniform() < 0.05 ? 25'000 : 1200));
       }},
      {"late-1-in-50", "every 50th batch of 2 ms is late by 60 ms", 1,
       [](R&, I i, P) { return batch(us(i % 50 == 49 ? 60'000 : 300), us(2000)); }},
      {"phases", "100 batches of a slow device, then 100 of a slow host", 1,
       [](R&, I i, P) { return in_phases(i); }},
      {"three-phases", "the same with 50 and a balanced phase", 1,
       [](R&, I i, P) { return in_three_phases(i); }},
      {"pareto", "loads have a Pareto tail of 1.4, up to 120 ms", 1,
       [](R& r, I, P) {
         const double load = 600 * std::pow(1 - r.uniform(), -1 / 1.4);
         return batch(us(std::min(load, 120'000.0)), us(2600));
       }},
      {"bursts", "32 batches of 1.6 ms at once, then 40 ms nothing", 1,
       [](R&, I i, P) { return batch(us(i % 32 == 31 ? 40'000 : 100), us(1600)); }},
      {"growing-bursts", "bursts of 8 to 80 batches", 1,
       [](R&, I i, P) { return in_growing_bursts(i); }},
      {"lengths", "300 kinds by length", 1,
       [](R& r, I, P) {
         const auto length = 1 + static_cast<I>(r.uniform() * 300);
         const Time compute = us(500 + 12 * static_cast<double>(length));
         return of_kind(batch(varied(r, 1500, 0.6), compute), length, kib(length * 8 + 512));
       }},
      {"unique-kinds", "each batch is of a kind of its own", 1,
       [](R& r, I i, P) { return of_kind(batch(varied(r, 1500, 0.6), varied(r, 2200, 0.5)), i); }},
      {"pause-inside", "every 25th batch pauses 30 ms between its copy and its compute", 1,
       [](R&, I i, P) { return with_pause(i); }},
      {"short", "computes of 0.25 ms, 1% of the loads take 8 ms", 1,
       [](R& r, I, P) { return batch(us(r.uniform() < 0.01 ? 8000 : 60), us(250)); }},
      {"big-copies", "copies of 1.7 ms beside computes of 2 ms, both vary", 1,
       [](R& r, I, P) {
         const CaseBatch drawn = batch(varied(r, 600, 0.8), varied(r, 2000, 0.6));
         return with_copy(drawn, varied(r, 1700, 0.8), kib(4608));
       }},
      {"two-streams", "a compute on each of two streams, both vary", 1,
       [](R& r, I, P) {
         return batch(varied(r, 1200, 0.8), varied(r, 1800, 0.8), varied(r, 1500, 0.8));
       }},
      {"two-streams-fast", "the same, equally long, with a fast host", 1,
       [](R& r, I, P) {
         return batch(varied(r, 300, 0.8), varied(r, 1800, 0.8), varied(r, 1800, 0.8));
       }},
      {"alternating", "batches alternate between two streams, and vary", 1,
       [](R& r, I i, P) { return alternating(varied(r, 200, 0.8), varied(r, 2000, 0.8), i); }},
      {"alternating-steady", "batches of 2 ms alternate between two streams", 1,
       [](R&, I i, P) { return alternating(us(200), us(2000), i); }},
      {"second-is-slower", "1 ms on the first stream, then 2 ms on the second", 1,
       [](R&, I, P) { return batch(us(200), us(1000), us(2000)); }},
      {"copy-bound", "copies of 2 ms, computes of 1 ms", 1,
       [](R&, I, P) { return with_copy(batch(us(200), us(1000)), us(2000), kib(4608)); }},
      {"reads-1-in-50", "the host reads a result after every 50th batch", 1,
       [](R& r, I i, P) {
         return read_if(batch(varied(r, 1500, 0.8), varied(r, 2000, 0.8)), i % 50 == 49);
       }},
      {"reads-1-in-10", "the same after every tenth", 1,
       [](R& r, I i, P) {
         return read_if(batch(varied(r, 800, 0.8), varied(r, 2000, 0.8)), i % 10 == 9);
       }},
      {"two-producers", "one of small batches beside one of large ones, both vary", 2,
       [](R& r, I, P p) {
         return p == 0 ? of_kind(batch(varied(r, 2500, 1), varied(r, 1200, 0.8)), 0, kib(1024))
                       : of_kind(batch(varied(r, 9000, 1), varied(r, 6000, 0.8)), 1, kib(6656));
       }},
      {"three-producers", "three equal ones that vary", 3,
       [](R& r, I, P) { return batch(varied(r, 5000, 1), varied(r, 2000, 0.8)); }},
      {"new-threads", "each batch is begun on a thread of its own", 1,
       [](R& r, I, P) { return of_thread(batch(varied(r, 1500, 0.8), varied(r, 2000, 0.8))); }},
      {"pipeline", "1.5 ms, then 1.5 ms on a second device, both vary (--real)", 1,
       [](R& r, I, P) {
         return linked(batch(varied(r, 300, 0.8), varied(r, 1500, 0.8), varied(r, 1500, 0.8)));
       }},
      {"pipeline-second", "1 ms, then 2 ms on a second device (--real)", 1,
       [](R&, I, P) { return linked(batch(us(200), us(1000), us(2000))); }},
  };
  return kAll;
}

}  // namespace

std::vector<const Case*> cases(bool real) {
  std::vector<const Case*> chosen;
  for (const Case& of : all()) {
    Random random(0);
    if (real || !of.draw(random, 0, 0).linked) chosen.push_back(&of);
  }
  return chosen;
}

std::vector<std::vector<CaseBatch>> draw(const Case& of, std::uint64_t count, std::uint64_t seed) {
  std::vector<std::vector<CaseBatch>> drawn(of.producers);
  for (std::size_t producer = 0; producer < of.producers; ++producer) {
    Random random(seed * 1009 + producer);
    for (std::uint64_t i = 0; i < count; ++i) {
      drawn[producer].push_back(of.draw(random, i, producer));
    }
  }
  return drawn;
}

}  // namespace weir::run_ahead
