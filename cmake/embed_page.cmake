# cmake -D page=FILE.html -D out=FILE.cc -P embed_page.cmake: the file as the value of page_template().
file(READ ${page} text)
file(WRITE ${out} "// Made by cmake/report.cmake.
#include \"affpcl/output/page.h\"

namespace affpcl {

std::string_view page_template() { return R\"~page~(${text})~page~\"; }

}  // namespace affpcl
")
