// The linear predictors of a multinomial target.
#pragma once

#include <cstddef>

#include "affpcl/math/dense.h"

namespace affpcl {

// [classes][classes - 1] with orthonormal columns that each sum to 0. The linear predictors of a
// multinomial target are coordinates in this basis B of the classes' logits, so no class is special:
// B eta has the logits up to a constant, and B' of any logits their coordinates.
Matrix class_basis(std::size_t classes);

}  // namespace affpcl
