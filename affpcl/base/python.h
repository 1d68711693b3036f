// Other programs' Python, for what a library of it does well: reading Parquet, drawing figures.
#pragma once

#include <string>
#include <vector>

namespace affpcl {

// Where to look, in this order: $AFFPCL_PYTHON, the active environment's, that of the environment
// this program is installed in, python3. Some may not exist.
std::vector<std::string> pythons();

// Runs it with these words and waits; its exit code, or -1 where it did not start. What it prints is
// not shown where `quiet`.
int run_python(const std::string& python, const std::vector<std::string>& words,
               bool quiet = false);

}  // namespace affpcl
