// Bits that cannot be predicted, from the operating system through libsodium.
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/random/discrete_gaussian.h"

namespace affpcl {

class SecretBits final : public RandomBits {
 public:
  SecretBits();
  ~SecretBits() override;  // leaves nothing in memory
  std::uint64_t take(int bits) override;

 private:
  std::vector<unsigned char> bytes_;
  std::size_t used_;
};

}  // namespace affpcl
