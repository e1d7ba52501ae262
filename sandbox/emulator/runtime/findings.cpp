#include "findings.h"

#include <algorithm>

#include "trace.h"

namespace kw {
namespace {

bool earlier(const Finding& one, const Finding& other) {
  auto order = [](const Finding& finding) {
    return std::tuple(finding.block[2], finding.block[1], finding.block[0], finding.thread[2], finding.thread[1],
                      finding.thread[0]);
  };
  return order(one) < order(other);
}

}  // namespace

Check check_of(const std::string& kind) {
  if (kind == "race") return RACECHECK;
  if (kind == "uninitialised") return INITCHECK;
  return kind == "barrier" || kind == "deadlock" ? SYNCCHECK : MEMCHECK;
}

const char* name_of(Check check) {
  return check == RACECHECK ? "racecheck" : check == INITCHECK ? "initcheck" : check == SYNCCHECK ? "synccheck" : "memcheck";
}

// Of equal findings of one launch that of the lowest block is kept, so that the order of blocks does not show.
size_t Findings::add(Finding finding) {
  std::lock_guard lock(mutex_);
  Key key{finding.kind, finding.kernel + "\n" + finding.file, finding.line, finding.space, finding.other_line, finding.note};
  if (auto found = known_.find(key); found != known_.end()) {
    Finding& first = findings_[found->second];
    finding.count += first.count;
    if (earlier(finding, first))
      first = std::move(finding);
    else
      first.count = finding.count;
    return found->second;
  }
  if (of_kernel_[finding.kernel]++ >= MOST) return NONE;
  known_[key] = findings_.size();
  findings_.push_back(std::move(finding));
  return findings_.size() - 1;
}

void Findings::more(size_t number, u64 times) {
  std::lock_guard lock(mutex_);
  if (number < findings_.size()) findings_[number].count += times;
}

std::vector<Finding> Findings::all() const {
  std::lock_guard lock(mutex_);
  return findings_;
}

std::string finding_json(const Finding& finding) {
  auto number = [](u64 value) { return value ? std::to_string(value) : "null"; };
  std::string fault = fault_json(finding, finding.kernel);
  fault.pop_back();
  return fault + ",\"severity\":" + (finding.note ? "\"note\"" : "\"error\"") +
         ",\"bytes\":" + number(finding.bytes) + ",\"other_line\":" + number(finding.other_line) +
         ",\"allocation\":" + quoted(finding.allocation) + ",\"allocation_bytes\":" + number(finding.allocation_bytes) +
         ",\"count\":" + std::to_string(finding.count) + "}";
}

}  // namespace kw
