#include "affpcl/stream/stream_score.h"

namespace affpcl {
namespace {

RunMethod make(const std::string& kind, const std::map<std::string, Value>& given,
               const StepSizes& step) {
  const MethodKind& k = method_kind(kind);
  return {kind, k.make(Values(k.params, given, "`method " + kind + "`")), 1, 1, step};
}

}  // namespace

std::vector<RunMethod> with_baselines(const std::string& method,
                                      const std::map<std::string, Value>& given,
                                      const StepSizes& step) {
  std::vector<RunMethod> methods;
  methods.push_back(make(method, given, step));
  methods.push_back(make("independent", {}, step));
  methods.push_back(make("fedavg", {}, step));
  return methods;
}

void Recent::add(double v) {
  now_.add(v);
  if (now_.n + before_.n < until_) return;
  before_ = now_, now_ = {}, until_ *= 2;
}

Paired Recent::all() const {
  return {before_.n + now_.n, before_.s1 + now_.s1, before_.s2 + now_.s2, before_.s3 + now_.s3};
}

void StreamScore::add(const std::array<RowLoss, 3>& row, double y) {
  tally.add(row, kind, y);
  for (std::size_t m = 0; m < row.size(); ++m) losses[m].add(row[m].loss);
  than_alone.add(row[0].loss - row[1].loss);
  than_pooled.add(row[0].loss - row[2].loss);
  kind = supported(than_alone.all(), than_pooled.all());
}

std::vector<RowTally> tallies(const std::vector<StreamScore>& followers) {
  std::vector<RowTally> all;
  for (const StreamScore& f : followers) all.push_back(f.tally);
  return all;
}

}  // namespace affpcl
