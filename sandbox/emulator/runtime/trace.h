// What a launch counted, as JSON in the words of sandbox/emulator/trace.py.
#pragma once

#include <string>
#include <vector>

#include "run.h"

namespace kw {

std::string quoted(const std::string& text);  // a JSON string
std::string trace_json(const Launch& launch, const std::vector<const Worker*>& workers);
std::string fault_json(const Finding& fault, const std::string& kernel);

}  // namespace kw
