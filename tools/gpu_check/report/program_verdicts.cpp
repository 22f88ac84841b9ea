#include "tools/gpu_check/report/program_verdicts.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "tools/gpu_check/report/judging.hpp"
#include "tools/gpu_check/report/programs.hpp"
#include "tools/gpu_check/report/text.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

/// What a run of this setup came to; `not run` where there was none.
std::string outcome_of(const ProgramRun* run) {
  return run == nullptr ? "not run" : run->outcome();
}

/// The first step at which two runs differ; as many steps as there are where they do not.
std::size_t first_difference(const ProgramRun& a, const ProgramRun& b) {
  const auto at = std::mismatch(a.losses.begin(), a.losses.end(), b.losses.begin(), b.losses.end());
  return static_cast<std::size_t>(at.first - a.losses.begin());
}

bool same_losses(const ProgramRun& a, const ProgramRun& b) {
  return !a.losses.empty() && a.losses == b.losses;
}

/// Whether the program tells the same numbers twice where Weir has no part in it.
bool differs_by_itself(const ProgramFigures& program) {
  const ProgramRun* plain = program.find("plain");
  const ProgramRun* async = program.find("plain_async");
  return plain != nullptr && async != nullptr && plain->finished() && async->finished() &&
         !same_losses(*plain, *async);
}

Verdict judge_same(const std::string& condition, const ProgramFigures& program) {
  std::vector<std::string> wrong;
  std::vector<std::string> not_compared;
  std::size_t compared = 0;
  std::size_t steps = 0;
  for (const ProgramRun& run : program.runs) {
    if (!with_weir(run.setup)) continue;
    const ProgramRun* plain = program.find(without_weir(run.setup));
    // What fails without Weir too says nothing of it. Without an end of its own it did not fail.
    if (plain != nullptr && plain->exit_code && !plain->stopped && !plain->finished()) {
      not_compared.push_back(setup_title(run.setup) +
                             " is compared with nothing: without Weir it " + plain->outcome());
    } else if (!run.finished() || plain == nullptr || !plain->finished()) {
      wrong.push_back(setup_title(run.setup) + ": " +
                      (run.finished() ? "without Weir " + outcome_of(plain) : run.outcome()));
    } else if (!same_losses(run, *plain)) {
      wrong.push_back(setup_title(run.setup) + " differs from step " +
                      std::to_string(first_difference(run, *plain)));
    } else {
      ++compared;
      steps = run.losses.size();
    }
  }
  if (!wrong.empty()) {
    if (differs_by_itself(program)) wrong.emplace_back("two runs without Weir differ too");
    return {condition, State::kNotMet, join(wrong)};
  }
  if (compared == 0) {
    const bool none = not_compared.empty();
    return {condition, none ? State::kNotMet : State::kLeftOut,
            none ? "nothing was compared" : join(not_compared)};
  }
  not_compared.insert(not_compared.begin(), "bit-identical over " + count(steps, "step") + " in " +
                                                count(compared, "run") + " with Weir");
  return {condition, State::kMet, join(not_compared)};
}

Verdict judge_served(const std::string& condition, const ProgramFigures& program) {
  std::vector<std::string> shares;
  bool enough = true;
  for (const ProgramRun& run : program.runs) {
    if (!with_weir(run.setup)) continue;
    const std::optional<double> share = run.served_share();
    enough = enough && share && *share >= kLeastServed;
    std::string figure = run.unreadable.empty() ? "no memory" : "no summary: " + run.unreadable;
    if (!run.exit_code) figure = run.outcome();
    if (share) figure = number(100 * *share, 2) + "%";
    shares.push_back(setup_title(run.setup) + " " + figure);
  }
  return {condition, met_if(enough && !shares.empty()),
          shares.empty() ? "no run with Weir" : join(shares)};
}

std::vector<Verdict> judge_training(const std::vector<std::string>& conditions,
                                    const ProgramFigures& program) {
  return {judge_same(conditions[0], program), judge_served(conditions[1], program)};
}

/// That `setup` finishes with the losses of the run that had enough memory.
Verdict judge_lives(const std::string& condition, const ProgramFigures& program,
                    std::string_view setup) {
  const ProgramRun* run = program.find(setup);
  const ProgramRun* enough = program.find("enough");
  if (run == nullptr || !run->finished()) return {condition, State::kNotMet, outcome_of(run)};
  if (enough == nullptr || !enough->finished()) {
    return {condition, State::kNotMet, "finished; with enough memory " + outcome_of(enough)};
  }
  const bool same = same_losses(*run, *enough);
  std::string figure =
      same ? "finished, losses bit-identical to those with enough memory"
           : "finished, losses differ from step " + std::to_string(first_difference(*run, *enough));
  if (run->weir) {
    figure += ", " + count(run->weir->held_back + run->weir->waits, "wait") + " of " +
              number(run->weir->waited_seconds, 2) + " s together";
  }
  return {condition, met_if(same), figure};
}

std::vector<Verdict> judge_prefetch(const std::vector<std::string>& conditions,
                                    const ProgramFigures& program) {
  const ProgramRun* plain = program.find("plain");
  const ProgramRun* async = program.find("plain_async");
  const bool dies = plain != nullptr && async != nullptr && plain->ran_out() && async->ran_out();
  return {
      {conditions[0], met_if(dies), outcome_of(plain) + "; in stream order " + outcome_of(async)},
      judge_lives(conditions[1], program, "weir_async"),
      judge_lives(conditions[2], program, "weir_batches")};
}

std::vector<Verdict> judge_shared(const std::vector<std::string>& conditions,
                                  const ProgramFigures& program) {
  const ProgramRun* plain = program.find("plain");
  std::size_t good = 0;
  std::vector<std::string> found;
  for (const ProgramRun& run : program.runs) {
    if (!with_weir(run.setup)) continue;
    if (!run.finished()) {
      found.push_back(run.outcome());
    } else if (!run.weir) {
      found.push_back("no summary: " + run.unreadable);
    } else if (run.weir->peak_reserved_bytes > run.weir->budget_bytes) {
      found.emplace_back("reserved more than its budget");
    } else if (plain == nullptr || !same_losses(run, *plain)) {
      found.emplace_back("losses differ from those of a process alone");
    } else {
      ++good;
    }
  }
  found.insert(found.begin(), std::to_string(good) + " of " + std::to_string(kSharing) +
                                  " finished within their budgets with the same losses");
  return {{conditions[0], met_if(good == kSharing && found.size() == 1), join(found)}};
}

template <typename Judge>
void judge_program(const UnmodifiedProgram& which, const std::vector<std::string>& what,
                   const json& evidence, std::vector<Verdict>& verdicts, const Judge& judge_it) {
  std::vector<std::string> conditions;
  conditions.reserve(what.size());
  for (const std::string& one : what) conditions.push_back(std::string(which.title) + ": " + one);
  judge_figures(conditions, evidence, kProgramsStep, verdicts,
                [&](const json& figures, const Step& step) {
                  const std::vector<ProgramFigures> programs = read_programs(figures);
                  const ProgramFigures* program = find_program(programs, which.name);
                  std::vector<Verdict> found;
                  if (program == nullptr) {
                    const bool planned = is_planned(figures, which.name);
                    for (const std::string& one : conditions) {
                      found.push_back({one, planned ? State::kNotMet : State::kLeftOut,
                                       planned ? "not run; the step " + describe(step)
                                               : "not among the programs of this call"});
                    }
                  } else if (!program->left_out.empty()) {
                    for (const std::string& one : conditions) {
                      found.push_back({one, State::kLeftOut, program->left_out});
                    }
                  } else {
                    found = judge_it(conditions, *program);
                  }
                  return found;
                });
}

struct JudgedFacts {
  std::size_t answers = 0;
  std::vector<std::string> harmful;     ///< not as Weir counts on
  std::vector<std::string> unanswered;  ///< of the others
  std::vector<std::string> unexpected;  ///< others than expected, on which Weir does not count
};

/// `expected` may be `7 or 8`; in parentheses is why nothing is expected: a cost, for example.
bool is_expected(const std::string& expected, const std::string& answer) {
  return expected.starts_with('(') ||
         (" or " + expected + " or ").find(" or " + answer + " or ") != std::string::npos;
}

void judge_answer(const json& fact, JudgedFacts& judged) {
  const std::string name = fact.at("fact");
  const std::string expected = fact.at("expected");
  const std::string answer = fact.value("answer", kNoAnswer);
  const std::string otherwise = fact.value("otherwise", "");
  const bool answered = fact.value("answered", false);
  const std::string both = name + ": expected " + expected + ", found " + answer;
  judged.answers += answered ? 1 : 0;
  if (!otherwise.empty() && (!answered || !is_expected(expected, answer))) {
    judged.harmful.push_back(otherwise + ": " + both);
  } else if (!answered) {
    judged.unanswered.push_back(name + ": " + answer);
  } else if (!is_expected(expected, answer)) {
    judged.unexpected.push_back(both);
  }
}

JudgedFacts judge_answers(const json& facts) {
  JudgedFacts judged;
  for (const json& fact : facts) judge_answer(fact, judged);
  return judged;
}

std::string describe(const JudgedFacts& facts) {
  if (facts.answers + facts.harmful.size() + facts.unanswered.size() == 0) return "no fact";
  const std::size_t unexpected = facts.unexpected.size();
  return count(facts.answers, "answer") + ", " +
         (unexpected == 0 ? "none unexpected"
                          : std::to_string(unexpected) + " unexpected: " + join(facts.unexpected));
}

}  // namespace

void judge_programs(const json& evidence, std::vector<Verdict>& verdicts) {
  for (const UnmodifiedProgram& program : kTrainingPrograms) {
    judge_program(program,
                  {"the same losses with Weir as without",
                   "Weir serves at least " + number(100 * kLeastServed, 0) + "% of what it can"},
                  evidence, verdicts, judge_training);
  }
  judge_program(kPrefetchProgram,
                {"runs out of memory without Weir", "finishes in the same memory with Weir",
                 "finishes there with batches marked by NVTX"},
                evidence, verdicts, judge_prefetch);
  judge_program(kSharedProgram, {"all finish, each under a budget of its own"}, evidence, verdicts,
                judge_shared);
}

void judge_facts(const json& evidence, std::vector<Verdict>& verdicts) {
  const std::string condition = "what only a GPU can tell is answered, and as Weir counts on";
  judge_figures({condition}, evidence, "facts", verdicts, [&](const json& figures, const Step& s) {
    const JudgedFacts facts = judge_answers(figures.at("facts"));
    std::vector<std::string> found = facts.harmful;
    found.insert(found.end(), facts.unanswered.begin(), facts.unanswered.end());
    if (!s.ok()) found.push_back("the step " + describe(s));
    const bool met = found.empty() && facts.answers > 0;
    found.push_back(describe(facts));
    return std::vector{Verdict{condition, met_if(met), join(found)}};
  });
}

}  // namespace weir::gpu_check
