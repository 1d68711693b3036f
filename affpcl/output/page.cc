#include "affpcl/output/page.h"

#include "affpcl/base/error.h"
#include "affpcl/output/result_folder-inl.h"

namespace affpcl {
namespace {

constexpr std::size_t kMostCharacters = 1'400'000;  // a page is to stay below 1.5 MB
constexpr std::string_view kPlace = "AFFPCL_DATA";  // report/src/template.html

// JSON that can stand inside a script element: no <, and nothing but ASCII.
std::string embeddable(const Json& data) {
  std::string text;
  for (char c : print_json(data, {.ascii = true}))
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  return text;
}

std::string_view required_template() {
  const std::string_view page = page_template();
  if (page.empty())
    throw BadInput(
        "this affpcl was built without its page: run tools/setup report, then cmake and build "
        "again "
        "(AFFPCL_REPORT=ON)");
  return page;
}

}  // namespace

std::string page_of(const Json& data) {
  std::string out(required_template());
  return out.replace(out.find(kPlace), kPlace.size(), embeddable(data));
}

std::string report_page(std::span<const std::string> folders) {
  const std::size_t taken = required_template().size();
  Json data{{"results", Json::array()}};
  std::vector<ResultFiles> results;
  for (const std::string& folder : folders) {
    results.push_back(read_result(folder));
    data["results"].push_back(
        page_data(results.back(), (kMostCharacters - taken) / folders.size()));
  }
  if (results.size() == 2) data["comparison"] = compare(results[0], results[1]);
  return page_of(data);
}

}  // namespace affpcl
