// The report page: one HTML file that shows a result folder, or two beside each other, and asks for
// nothing else. The template is built from report/ and embedded; the data are put into it here.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace affpcl {

class Json;

// The page without data; empty where it was not built (cmake/report.cmake).
std::string_view page_template();

// A result folder of run, reproduce, fit or affinity, or two. BadInput, in one sentence, where one is
// no result, is not whole or is damaged, where two do not compare, and where there is no template.
std::string report_page(std::span<const std::string> folders);

// The page of data that are ready for it.
std::string page_of(const Json& data);

}  // namespace affpcl
