# tools/features: LeNet-5 features for the real-world figure. Needs libtorch (Debian's libtorch-dev), and nothing else does.
find_path(TORCH_INCLUDE_DIR torch/csrc/api/include/torch/torch.h)
find_library(TORCH_LIBRARY torch)
find_library(TORCH_CPU_LIBRARY torch_cpu)
find_library(C10_LIBRARY c10)
if(NOT TORCH_INCLUDE_DIR OR NOT TORCH_CPU_LIBRARY OR NOT C10_LIBRARY)
  message(FATAL_ERROR "AFFPCL_FEATURES needs libtorch: install libtorch-dev (tools/setup features does).")
endif()
add_executable(affpcl_features tools/features/main.cc)
target_compile_features(affpcl_features PRIVATE cxx_std_20)
target_include_directories(affpcl_features SYSTEM PRIVATE
  ${TORCH_INCLUDE_DIR} ${TORCH_INCLUDE_DIR}/torch/csrc/api/include)
target_link_libraries(affpcl_features PRIVATE affpcl affpcl_private CLI11::CLI11
  ${TORCH_LIBRARY} ${TORCH_CPU_LIBRARY} ${C10_LIBRARY})
set_target_properties(affpcl_features PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
