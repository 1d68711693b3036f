// Where A(s) = v w' it is never formed: A(s) x = v (w'x), lane by lane.
#pragma once

#include "affpcl/math/blocks.h"

namespace affpcl {

void dot(In w, In x, int lanes, double* sum);     // sum = w'x
void scale(In v, const double* factor, Out out);  // out = v factor
void outer(In v, In w, In x, Out out);            // out = v (w'x)

}  // namespace affpcl
